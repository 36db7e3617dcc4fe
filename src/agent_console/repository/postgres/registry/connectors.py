"""Connectors: storage targets. No statement that answers a reader names the ciphertext."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, delete, exists, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agent_connectors, collections, connectors, users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.connectors import (
    AGENTS_SHOWN,
    Connector,
    ConnectorAsked,
    ConnectorQuery,
    ConnectorUpdate,
    NewConnector,
)
from agent_console.domain.errors import Conflict, ConsoleError, Invalid, JSONValue, NotFound
from agent_console.domain.ids import ConnectorId, TeamId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.records import Page
from agent_console.domain.redact import redact_json
from agent_console.domain.states import JOB_FINAL, JobStatus
from agent_console.repository.operations.storage import (
    CONNECTOR_CREATED,
    CONNECTOR_DELETED,
    CONNECTOR_UPDATED,
    CONNECTORS_CREATE,
    CONNECTORS_DELETE,
    CONNECTORS_GET,
    CONNECTORS_LIST,
    CONNECTORS_UPDATE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.queue.stats import jobs_of_connector
from agent_console.repository.postgres.registry.credentials_at_rest import Sealed, server_keys
from agent_console.repository.postgres.work import Work, answers

creator = users.alias("creator")
changer = users.alias("changer")


def refused_field(field: str, problem: str, *, hint: str = "") -> ConsoleError:
    fields: list[JSONValue] = [{"field": field, "problem": problem}]
    return Invalid(f"Not acceptable: {field} {problem}.", hint=hint, details={"fields": fields})


def no_connector(connector_id: ConnectorId) -> ConsoleError:
    return NotFound(f"There is no connector {connector_id}.", hint="List them: agent-console connectors list")


def living_connectors(team_id: TeamId) -> Select[Any]:
    """Everything that is shown of a connector but its agents; the key's id only says that there is a secret."""
    shown = tuple(connectors.c[name] for name in Connector.model_fields if name in connectors.c)
    made = and_(creator.c.team_id == connectors.c.team_id, creator.c.id == connectors.c.created_by_user_id)
    changed = and_(changer.c.team_id == connectors.c.team_id, changer.c.id == connectors.c.updated_by_user_id)
    return (
        select(
            *shown,
            connectors.c.credentials_key_id.is_not(None).label("has_credentials"),
            creator.c.full_name.label("created_by"),
            changer.c.full_name.label("updated_by"),
        )
        .select_from(connectors.join(creator, made).outerjoin(changer, changed))
        .where(connectors.c.team_id == team_id, connectors.c.deleted_at.is_(None))
    )


# For each connector of a page the first agents in the order of agent_connectors_connector_idx, one more than
# is shown, which only says that there are more.
AGENTS_OF = text(f"""
    select c.id as connector_id, a.id, a.name
      from unnest(cast(:connectors as uuid[])) as c (id)
     cross join lateral (
           select a.id, a.name
             from agent_connectors k
             join agents a on a.team_id = k.team_id and a.id = k.agent_id
            where k.team_id = :team_id and k.connector_id = c.id
              and a.deleted_at is null and a.revoked_at is null
            order by k.agent_id
            limit {AGENTS_SHOWN + 1}
     ) as a
     order by c.id, a.id
""")  # noqa: S608


async def _with_agents(work: Work, rows: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    parameters = {"team_id": work.caller.team_id, "connectors": [row.id for row in rows]}
    found = (await work.connection.execute(AGENTS_OF, parameters)).all()
    shown = []
    for row in rows:
        able = [{"id": agent.id, "name": agent.name} for agent in found if agent.connector_id == row.id]
        more = {"agents": able[:AGENTS_SHOWN], "agents_capped": len(able) > AGENTS_SHOWN}
        shown.append(dict(row._mapping) | more)
    return shown


@answers(CONNECTORS_LIST)
async def list_connectors(work: Work, query: ConnectorQuery) -> Page[Connector]:
    wanted = living_connectors(work.caller.team_id).order_by(connectors.c.id).limit(query.limit + 1)
    if (after := position(query.after, ConnectorId)) is not None:
        wanted = wanted.where(connectors.c.id > after)
    if query.type is not None:
        wanted = wanted.where(connectors.c.type == query.type.value)
    if query.credential_location is not None:
        wanted = wanted.where(connectors.c.credential_location == query.credential_location.value)
    rows = (await work.connection.execute(wanted)).all()
    return page_of(Page[Connector], await _with_agents(work, rows), query.limit, ConnectorId)


@answers(CONNECTORS_GET)
async def get_connector(work: Work, asked: ConnectorAsked) -> Connector:
    return await connector_of(work, asked.connector_id)


async def connector_of(work: Work, connector_id: ConnectorId) -> Connector:
    wanted = living_connectors(work.caller.team_id).where(connectors.c.id == connector_id)
    rows = (await work.connection.execute(wanted)).all()
    if not rows:
        raise no_connector(connector_id)
    return Connector.model_validate((await _with_agents(work, rows))[0])


async def locked_connector(work: Work, connector_id: ConnectorId) -> Row[Any]:
    """The connector for the rest of this transaction, with the transaction's own time."""
    wanted = (
        select(
            connectors.c.name,
            connectors.c.type,
            connectors.c.credential_location,
            connectors.c.config,
            func.now().label("at"),
        )
        .where(
            connectors.c.team_id == work.caller.team_id,
            connectors.c.id == connector_id,
            connectors.c.deleted_at.is_(None),
        )
        .with_for_update(of=connectors)
    )
    if (found := (await work.connection.execute(wanted)).first()) is None:
        raise no_connector(connector_id)
    return found


async def change_connector(work: Work, connector_id: ConnectorId, **values: Any) -> None:
    await work.connection.execute(
        update(connectors)
        .where(connectors.c.team_id == work.caller.team_id, connectors.c.id == connector_id)
        .values(values | {"updated_by_user_id": work.caller.user_id, "updated_at": func.now()})
    )


async def tell_connector(work: Work, connector_id: ConnectorId, action: str, facts: Facts, at: datetime) -> None:
    event = AuditEvent(action=action, resource_type="connector", resource_id=str(connector_id), metadata=facts)
    await audit.append(work, event, at)
    work.announce(Topic.CONNECTORS, connector_id)


def _refuse_secrets(config: dict[str, Any]) -> None:
    if redact_json(config) != config:
        raise refused_field(
            "config",
            "holds what looks like a secret",
            hint="Put it into the credentials: they are encrypted, the config is shown to everyone.",
        )


def sealed_for(work: Work, connector_id: ConnectorId, credentials: dict[str, Any]) -> Sealed:
    return server_keys().seal(credentials, work.caller.team_id, connector_id)


def only_on_server(location: CredentialLocation) -> None:
    if location is not CredentialLocation.SERVER:
        raise refused_field(
            "credentials",
            f"can't be given to the server while it is {location.value} who has them",
            hint="Nothing was stored. Configure them on the agents, or choose the location server.",
        )


@answers(CONNECTORS_CREATE)
async def create_connector(work: Work, new: NewConnector) -> Connector:
    _refuse_secrets(new.config)
    connector_id = ConnectorId.new()
    sealed = None
    if new.credentials is not None:
        only_on_server(new.credential_location)
        sealed = sealed_for(work, connector_id, new.credentials)
    made = await work.connection.execute(
        insert(connectors)
        .values(
            team_id=work.caller.team_id,
            id=connector_id,
            name=new.name,
            type=new.type.value,
            credential_location=new.credential_location.value,
            credentials_encrypted=None if sealed is None else sealed.ciphertext,
            credentials_key_id=None if sealed is None else sealed.key_id,
            config=new.config,
            created_by_user_id=work.caller.user_id,
            updated_by_user_id=work.caller.user_id,
        )
        .returning(connectors.c.created_at)
    )
    facts: Facts = {
        "name": new.name,
        "type": new.type.value,
        "credential_location": new.credential_location.value,
        "key_id": None if sealed is None else sealed.key_id,
    }
    await tell_connector(work, connector_id, CONNECTOR_CREATED, facts, made.scalar_one())
    return await connector_of(work, connector_id)


@answers(CONNECTORS_UPDATE)
async def update_connector(work: Work, change: ConnectorUpdate) -> Connector:
    now = await locked_connector(work, change.connector_id)
    wanted = change.model_dump(include={"name", "config"}, exclude_none=True)
    changed = {name: value for name, value in wanted.items() if value != now._mapping[name]}
    if changed:
        _refuse_secrets(changed.get("config", {}))
        await change_connector(work, change.connector_id, **changed)
        facts: Facts = {"changed": ", ".join(sorted(changed))}
        await tell_connector(work, change.connector_id, CONNECTOR_UPDATED, facts, now.at)
    return await connector_of(work, change.connector_id)


UNFINISHED = frozenset(JobStatus) - JOB_FINAL


def _in_use(name: str, what: str) -> ConsoleError:
    return Conflict(
        f"Connector {name} is in use by {what}.",
        hint=f"Delete or finish the {what} first.",
        details={"used_by": what},
    )


@answers(CONNECTORS_DELETE)
async def delete_connector(work: Work, asked: ConnectorAsked) -> Connector:
    """The row stays for the jobs that remember it; its name is free again and its credentials are gone."""
    team_id, connector_id = work.caller.team_id, asked.connector_id
    now = await locked_connector(work, connector_id)
    last = await connector_of(work, connector_id)
    of_collections = exists().where(
        collections.c.team_id == team_id,
        collections.c.connector_id == connector_id,
        collections.c.deleted_at.is_(None),
    )
    if (await work.connection.execute(select(of_collections))).scalar_one():
        raise _in_use(now.name, "collections")
    if await jobs_of_connector(work.connection, team_id, connector_id, UNFINISHED):
        raise _in_use(now.name, "unfinished jobs")
    await work.connection.execute(
        delete(agent_connectors).where(
            agent_connectors.c.team_id == team_id, agent_connectors.c.connector_id == connector_id
        )
    )
    await change_connector(
        work, connector_id, deleted_at=func.now(), credentials_encrypted=None, credentials_key_id=None
    )
    await tell_connector(work, connector_id, CONNECTOR_DELETED, {"name": now.name}, now.at)
    return last

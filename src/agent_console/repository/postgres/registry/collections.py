"""Collections, and the one scheduled job each of them has while it is refreshed on a timetable."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, func, select, update
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agents, collections, connectors, jobs, users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.collections import (
    Collection,
    CollectionAsked,
    CollectionQuery,
    CollectionUpdate,
    NewCollection,
)
from agent_console.domain.errors import Conflict, ConsoleError, NotFound
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, TeamId
from agent_console.domain.jobs import Job
from agent_console.domain.kinds import StorageKind
from agent_console.domain.records import Page
from agent_console.domain.states import JobStatus
from agent_console.repository.operations.storage import (
    COLLECTION_CREATED,
    COLLECTION_DELETED,
    COLLECTION_REFRESHED,
    COLLECTION_UPDATED,
    COLLECTIONS_CREATE,
    COLLECTIONS_DELETE,
    COLLECTIONS_GET,
    COLLECTIONS_LIST,
    COLLECTIONS_REFRESH,
    COLLECTIONS_UPDATE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.queue.jobs import job_of
from agent_console.repository.postgres.queue.timetable import Timetable, end_jobs, keep_timetable, refresh_now
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.registry.connectors import no_connector, refused_field
from agent_console.repository.postgres.work import Work, answers

creator = users.alias("creator")
changer = users.alias("changer")

# The job is the truth about the next refresh. Served by jobs_scheduled_uq, as there is one: to ask for the first
# of several would make the planner walk all that is scheduled, in the order of time.
NEXT_REFRESH = (
    select(jobs.c.scheduled_for)
    .where(
        jobs.c.team_id == collections.c.team_id,
        jobs.c.collection_id == collections.c.id,
        jobs.c.tool.is_not_distinct_from(collections.c.tool),
        jobs.c.status == JobStatus.SCHEDULED.value,
    )
    .limit(1)
    .scalar_subquery()
)
NEVER_NULL = ("name", "auto_refresh")
RHYTHM = {"auto_refresh", "refresh_interval_hours"}


def no_collection(collection_id: CollectionId) -> ConsoleError:
    return NotFound(f"There is no collection {collection_id}.", hint="List them: agent-console collections list")


def living_collections(team_id: TeamId) -> Select[Any]:
    """Collections with all that is shown of them: a few look-ups by key for each row of a page."""
    mine = (name for name in Collection.model_fields if name in collections.c and name != "next_refresh_at")
    of_team = collections.c.team_id
    made = and_(creator.c.team_id == of_team, creator.c.id == collections.c.created_by_user_id)
    changed = and_(changer.c.team_id == of_team, changer.c.id == collections.c.updated_by_user_id)
    reached = and_(connectors.c.team_id == of_team, connectors.c.id == collections.c.connector_id)
    bound = and_(agents.c.team_id == of_team, agents.c.id == collections.c.bound_agent_id)
    return (
        select(
            *(collections.c[name] for name in mine),
            NEXT_REFRESH.label("next_refresh_at"),
            connectors.c.name.label("connector"),
            agents.c.name.label("bound_agent"),
            creator.c.full_name.label("created_by"),
            changer.c.full_name.label("updated_by"),
        )
        .select_from(
            collections.join(creator, made)
            .outerjoin(changer, changed)
            .outerjoin(connectors, reached)
            .outerjoin(agents, bound)
        )
        .where(of_team == team_id, collections.c.deleted_at.is_(None))
    )


@answers(COLLECTIONS_LIST)
async def list_collections(work: Work, query: CollectionQuery) -> Page[Collection]:
    wanted = living_collections(work.caller.team_id).order_by(collections.c.id).limit(query.limit + 1)
    if (after := position(query.after, CollectionId)) is not None:
        wanted = wanted.where(collections.c.id > after)
    if query.type is not None:
        wanted = wanted.where(collections.c.type == query.type.value)
    if query.bound_agent_id is not None:
        wanted = wanted.where(collections.c.bound_agent_id == query.bound_agent_id)
    if query.connector_id is not None:
        wanted = wanted.where(collections.c.connector_id == query.connector_id)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Collection], rows, query.limit, CollectionId)


@answers(COLLECTIONS_GET)
async def get_collection(work: Work, asked: CollectionAsked) -> Collection:
    return await _collection(work, asked.collection_id)


async def _collection(work: Work, collection_id: CollectionId) -> Collection:
    wanted = living_collections(work.caller.team_id).where(collections.c.id == collection_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise no_collection(collection_id)
    return Collection.model_validate(dict(found))


async def locked_collection(work: Work, collection_id: CollectionId, *, for_deletion: bool = False) -> Row[Any]:
    """The collection for the rest of this transaction: whoever changes its timetable holds this lock.

    Jobs that are being made for it wait; a row that only refers to it waits while it is being deleted.
    """
    wanted = (
        select(collections, func.now().label("at"))
        .where(
            collections.c.team_id == work.caller.team_id,
            collections.c.id == collection_id,
            collections.c.deleted_at.is_(None),
        )
        .with_for_update(of=collections, key_share=not for_deletion)
    )
    if (found := (await work.connection.execute(wanted)).first()) is None:
        raise no_collection(collection_id)
    return found


async def _tell(work: Work, collection_id: CollectionId, action: str, facts: Facts, at: datetime) -> None:
    event = AuditEvent(action=action, resource_type="collection", resource_id=str(collection_id), metadata=facts)
    await audit.append(work, event, at)
    work.announce(Topic.COLLECTIONS, collection_id)


async def _check_storage(
    work: Work, kind: StorageKind, connector_id: ConnectorId | None, agent_id: AgentId | None
) -> None:
    """What the kind of storage asks for; agent and connector stay locked against being deleted meanwhile."""
    if kind is StorageKind.LOCAL and agent_id is None:
        raise refused_field(
            "bound_agent_id", "is needed for local storage", hint="Name the agent that has the files."
        )
    if kind in (StorageKind.S3, StorageKind.GCS) and agent_id is not None:
        raise refused_field(
            "bound_agent_id", f"can't be set for {kind.value}", hint="Any capable agent can reach it."
        )
    if connector_id is not None:
        await _require_connector(work, kind, connector_id)
    if agent_id is not None:
        await _require_agent(work, agent_id)


async def _require_connector(work: Work, kind: StorageKind, connector_id: ConnectorId) -> None:
    wanted = (
        select(connectors.c.type)
        .where(
            connectors.c.team_id == work.caller.team_id,
            connectors.c.id == connector_id,
            connectors.c.deleted_at.is_(None),
        )
        .with_for_update(read=True)
    )
    if (found := (await work.connection.execute(wanted)).scalar()) is None:
        raise no_connector(connector_id)
    if found != kind.value:
        raise refused_field("connector_id", f"is a connector to {found}, not to {kind.value}")


async def _require_agent(work: Work, agent_id: AgentId) -> None:
    wanted = (
        select(agents.c.revoked_at)
        .where(agents.c.team_id == work.caller.team_id, agents.c.id == agent_id, agents.c.deleted_at.is_(None))
        .with_for_update(read=True)
    )
    if (found := (await work.connection.execute(wanted)).first()) is None:
        raise no_agent(agent_id)
    if found.revoked_at is not None:
        raise Conflict(f"Agent {agent_id} is revoked and will never refresh it.", hint="Bind another agent.")


@answers(COLLECTIONS_CREATE)
async def create_collection(work: Work, new: NewCollection) -> Collection:
    await _check_storage(work, new.type, new.connector_id, new.bound_agent_id)
    collection_id = CollectionId.new()
    made = await work.connection.execute(
        insert(collections)
        .values(
            new.model_dump()
            | {
                "type": new.type.value,
                "team_id": work.caller.team_id,
                "id": collection_id,
                "created_by_user_id": work.caller.user_id,
                "updated_by_user_id": work.caller.user_id,
            }
        )
        .returning(collections, collections.c.created_at.label("at"))
    )
    row = made.one()
    scheduled = await keep_timetable(work, Timetable.of(row), new_rhythm=True)
    facts: Facts = {
        "name": new.name,
        "type": new.type.value,
        "connector_id": None if new.connector_id is None else str(new.connector_id),
        "bound_agent_id": None if new.bound_agent_id is None else str(new.bound_agent_id),
        "scheduled": scheduled,
    }
    await _tell(work, collection_id, COLLECTION_CREATED, facts, row.at)
    return await _collection(work, collection_id)


@answers(COLLECTIONS_UPDATE)
async def update_collection(work: Work, change: CollectionUpdate) -> Collection:
    now = await locked_collection(work, change.collection_id)
    wanted = change.model_dump(exclude_unset=True, exclude={"collection_id"})
    changed = {
        name: value
        for name, value in wanted.items()
        if value != now._mapping[name] and not (value is None and name in NEVER_NULL)
    }
    if not changed:
        return await _collection(work, change.collection_id)
    after = dict(now._mapping) | changed
    if changed.keys() & {"connector_id", "bound_agent_id"}:
        await _check_storage(work, StorageKind(now.type), after["connector_id"], after["bound_agent_id"])
    kept = await work.connection.execute(
        update(collections)
        .where(collections.c.team_id == work.caller.team_id, collections.c.id == change.collection_id)
        .values(changed | {"updated_by_user_id": work.caller.user_id, "updated_at": func.now()})
        .returning(collections, func.now().label("at"))
    )
    timetable = Timetable.of(kept.one())
    scheduled = await keep_timetable(work, timetable, new_rhythm=bool(changed.keys() & RHYTHM))
    facts: Facts = {"changed": ", ".join(sorted(changed)), "scheduled": scheduled}
    await _tell(work, change.collection_id, COLLECTION_UPDATED, facts, now.at)
    return await _collection(work, change.collection_id)


@answers(COLLECTIONS_DELETE)
async def delete_collection(work: Work, asked: CollectionAsked) -> Collection:
    """Waiting jobs are cancelled; running ones go on and are told that what they work for is gone."""
    now = await locked_collection(work, asked.collection_id, for_deletion=True)
    last = await _collection(work, asked.collection_id)
    await work.connection.execute(
        update(collections)
        .where(collections.c.team_id == work.caller.team_id, collections.c.id == asked.collection_id)
        .values(deleted_at=func.now(), updated_by_user_id=work.caller.user_id, updated_at=func.now())
    )
    cancelled, running = await end_jobs(work, asked.collection_id, now.name)
    facts: Facts = {"name": now.name, "cancelled_jobs": cancelled, "running_jobs": running}
    await _tell(work, asked.collection_id, COLLECTION_DELETED, facts, now.at)
    return last


@answers(COLLECTIONS_REFRESH)
async def refresh_collection(work: Work, asked: CollectionAsked) -> Job:
    """A refresh that waits already is the one that was asked for; asking twice makes no second one."""
    now = await locked_collection(work, asked.collection_id)
    refresh = await refresh_now(work, Timetable.of(now))
    if refresh.changed:
        facts: Facts = {"job_id": str(refresh.job_id), "cancelled_jobs": refresh.cancelled}
        await _tell(work, asked.collection_id, COLLECTION_REFRESHED, facts, now.at)
    return await job_of(work, refresh.job_id)

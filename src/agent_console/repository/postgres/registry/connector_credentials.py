"""Where the credentials of a connector are kept: on the server, sealed, or on the agents that say so."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agent_connectors, connectors
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.connectors import (
    Connector,
    ConnectorCredentials,
    ConnectorMove,
    ConnectorReport,
    Resealed,
)
from agent_console.domain.errors import Conflict, Forbidden
from agent_console.domain.ids import ConnectorId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.records import Nothing
from agent_console.repository.operations.storage import (
    CONNECTOR_CREDENTIALS_SET,
    CONNECTOR_MOVED,
    CONNECTOR_REPORTED,
    CONNECTORS_MOVE,
    CONNECTORS_REPORT,
    CONNECTORS_RESEAL,
    CONNECTORS_RESEALED,
    CONNECTORS_SET_CREDENTIALS,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.registry.connectors import (
    change_connector,
    connector_of,
    locked_connector,
    only_on_server,
    refused_field,
    sealed_for,
    tell_connector,
)
from agent_console.repository.postgres.registry.credentials_at_rest import Sealed, server_keys
from agent_console.repository.postgres.work import Work, answers

RESEAL_BATCH = 100

SERVER, AGENT, PENDING = CredentialLocation.SERVER, CredentialLocation.AGENT, CredentialLocation.PENDING
MOVES = {(PENDING, AGENT), (SERVER, AGENT), (AGENT, SERVER)}


@answers(CONNECTORS_SET_CREDENTIALS)
async def set_credentials(work: Work, given: ConnectorCredentials) -> Connector:
    now = await locked_connector(work, given.connector_id)
    only_on_server(CredentialLocation(now.credential_location))
    sealed = sealed_for(work, given.connector_id, given.credentials)
    await change_connector(
        work, given.connector_id, credentials_encrypted=sealed.ciphertext, credentials_key_id=sealed.key_id
    )
    await tell_connector(work, given.connector_id, CONNECTOR_CREDENTIALS_SET, {"key_id": sealed.key_id}, now.at)
    return await connector_of(work, given.connector_id)


@answers(CONNECTORS_MOVE)
async def move_credentials(work: Work, move: ConnectorMove) -> Connector:
    now = await locked_connector(work, move.connector_id)
    here = CredentialLocation(now.credential_location)
    if move.credentials is not None:
        only_on_server(move.to)
    if here is move.to and move.credentials is None:
        return await connector_of(work, move.connector_id)
    if (here, move.to) not in MOVES:
        onward = ", ".join(sorted(to.value for start, to in MOVES if start is here))
        raise Conflict(
            f"The credentials are {here.value} and can't become {move.to.value}.",
            hint=f"From here they can become: {onward}.",
            details={"state": here.value, "wanted": move.to.value},
        )
    sealed = None
    if move.to is SERVER:
        if move.credentials is None:
            raise refused_field("credentials", "are needed when the server shall keep them")
        sealed = sealed_for(work, move.connector_id, move.credentials)
    # The server's copy goes in the statement that takes it away from the server.
    await change_connector(
        work,
        move.connector_id,
        credential_location=move.to.value,
        credentials_encrypted=None if sealed is None else sealed.ciphertext,
        credentials_key_id=None if sealed is None else sealed.key_id,
    )
    facts: Facts = {"from": here.value, "to": move.to.value, "key_id": None if sealed is None else sealed.key_id}
    await tell_connector(work, move.connector_id, CONNECTOR_MOVED, facts, now.at)
    return await connector_of(work, move.connector_id)


@answers(CONNECTORS_REPORT)
async def report_credentials(work: Work, report: ConnectorReport) -> Connector:
    """The first agent with credentials of its own ends the waiting of a pending connector."""
    agent_id, connector_id = work.caller.agent_id, report.connector_id
    if agent_id is None:
        raise Forbidden("Only an agent can report what it has.", hint="Use the agent's own key.")
    now = await locked_connector(work, connector_id)
    here = CredentialLocation(now.credential_location)
    mine = {"team_id": work.caller.team_id, "agent_id": agent_id, "connector_id": connector_id}
    mark = (
        insert(agent_connectors).values(mine).on_conflict_do_nothing()
        if report.available
        else delete(agent_connectors).where(*(agent_connectors.c[name] == value for name, value in mine.items()))
    )
    marked = (await work.connection.execute(mark.returning(agent_connectors.c.agent_id))).first() is not None
    moved = report.available and here is PENDING
    if moved:
        here = AGENT
        await change_connector(work, connector_id, credential_location=here.value)
    if moved or marked:
        facts: Facts = {"available": report.available, "credential_location": here.value}
        await tell_connector(work, connector_id, CONNECTOR_REPORTED, facts, now.at)
        work.announce(Topic.AGENTS, agent_id)
    return await connector_of(work, connector_id)


RESEAL = update(connectors).where(
    connectors.c.team_id == bindparam("of_team"), connectors.c.id == bindparam("of_connector")
)


@answers(CONNECTORS_RESEAL)
async def reseal_credentials(work: Work, request: Nothing) -> Resealed:
    """In batches by key, so that any number of them needs little memory; all of it is one transaction."""
    keys, team_id = server_keys(), work.caller.team_id
    first = keys.first
    resealed, unreadable = 0, []
    after: ConnectorId | None = None
    at: datetime | None = None
    while rows := await _sealed_otherwise(work, first.id, after):
        fresh = []
        for row in rows:
            plain = keys.unseal(Sealed(row.credentials_encrypted, row.credentials_key_id), team_id, row.id)
            if plain is None:
                unreadable.append(row.id)
                continue
            sealed = keys.seal(plain, team_id, row.id)
            fresh.append(
                {
                    "of_team": team_id,
                    "of_connector": row.id,
                    "credentials_encrypted": sealed.ciphertext,
                    "credentials_key_id": sealed.key_id,
                }
            )
        if fresh:
            await work.connection.execute(RESEAL, fresh)
        resealed, after, at = resealed + len(fresh), rows[-1].id, rows[-1].at
    if resealed and at is not None:
        facts: Facts = {"resealed": resealed, "unreadable": len(unreadable), "key_id": first.id}
        event = AuditEvent(
            action=CONNECTORS_RESEALED, resource_type="team", resource_id=str(team_id), metadata=facts
        )
        await audit.append(work, event, at)
    return Resealed(resealed=resealed, unreadable=tuple(unreadable))


async def _sealed_otherwise(work: Work, key_id: str, after: ConnectorId | None) -> Sequence[Row[Any]]:
    wanted = (
        select(
            connectors.c.id,
            connectors.c.credentials_encrypted,
            connectors.c.credentials_key_id,
            func.now().label("at"),
        )
        .where(connectors.c.team_id == work.caller.team_id, connectors.c.credentials_key_id != key_id)
        .order_by(connectors.c.id)
        .limit(RESEAL_BATCH)
        .with_for_update(of=connectors)
    )
    if after is not None:
        wanted = wanted.where(connectors.c.id > after)
    return (await work.connection.execute(wanted)).all()

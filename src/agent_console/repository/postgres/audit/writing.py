"""Append to the audit trail, inside the transaction of what it tells about."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.tables import audit_log
from agent_console.domain.audit import FORM, NOWHERE, Actor, AuditEvent, Place, event_hash
from agent_console.domain.identity import Caller
from agent_console.domain.ids import AuditId, TeamId
from agent_console.domain.kinds import ActorType
from agent_console.domain.redact import redact
from agent_console.repository.postgres.work import Work


def actor_of(caller: Caller, place: Place = NOWHERE) -> Actor:
    if caller.agent_id is not None:
        return Actor(ActorType.AGENT, None, caller.name, caller.agent_id)
    return Actor(ActorType.HUMAN, caller.user_id, caller.name, place=place)


# Made once: putting it together anew for every act took longer than writing the row.
WRITE = insert(audit_log)


async def append(work: Work, event: AuditEvent, at: datetime) -> AuditId:
    """Write the caller's act; `at` is the transaction's own time. A row that can't be written fails the act."""
    return await append_for(work.connection, work.caller.team_id, actor_of(work.caller, work.place), event, at)


async def append_all(work: Work, events: Sequence[AuditEvent], at: datetime) -> None:
    """Write many acts of the caller at once."""
    await append_each(work, [(event, work.place) for event in events], at)


async def append_each(work: Work, acts: Sequence[tuple[AuditEvent, Place]], at: datetime) -> None:
    """The same for acts that one caller did from several places."""
    if acts:
        caller = work.caller
        rows = [_row(caller.team_id, AuditId.new(), actor_of(caller, place), event, at) for event, place in acts]
        await work.connection.execute(WRITE, rows)


async def append_for(
    connection: AsyncConnection, team_id: TeamId, actor: Actor, event: AuditEvent, at: datetime
) -> AuditId:
    """Write an act of anyone, the system included."""
    audit_id = AuditId.new()
    await connection.execute(WRITE, _row(team_id, audit_id, actor, event, at))
    return audit_id


def without_secrets(event: AuditEvent) -> AuditEvent:
    """The act as it may be kept for years: names and reasons are typed by hand, and so is what is pasted there."""
    facts = {name: redact(fact) if isinstance(fact, str) else fact for name, fact in event.metadata.items()}
    reason = None if event.reason is None else redact(event.reason)
    if reason == event.reason and facts == event.metadata:
        return event
    return replace(event, metadata=facts, reason=reason)


def _row(team_id: TeamId, audit_id: AuditId, actor: Actor, event: AuditEvent, at: datetime) -> dict[str, object]:
    event = without_secrets(event)
    return {
        "team_id": team_id,
        "id": audit_id,
        "actor_type": actor.type.value,
        "actor_user_id": actor.user_id,
        "actor_agent_id": actor.agent_id,
        "actor_label": actor.label,
        "action": event.action,
        "resource_type": event.resource_type,
        "resource_id": event.resource_id,
        "thread_id": event.thread_id,
        "run_id": event.run_id,
        "decision": None if event.decision is None else event.decision.value,
        "reason": event.reason,
        "ip": actor.place.ip,
        "user_agent": actor.place.user_agent,
        "metadata": dict(event.metadata),
        "form": FORM,
        "event_hash": event_hash(team_id, audit_id, actor, event, at),
        "created_at": at,
    }

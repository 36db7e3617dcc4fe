"""Append to the audit trail, inside the transaction of what it tells about."""

from datetime import datetime

from sqlalchemy import insert

from agent_console.database.tables import audit_log
from agent_console.domain.audit import FORM, Actor, AuditEvent, event_hash
from agent_console.domain.ids import AuditId
from agent_console.domain.kinds import ActorType
from agent_console.repository.postgres.work import Work


async def append(work: Work, event: AuditEvent, at: datetime) -> AuditId:
    """Write the row; `at` is the transaction's own time. A row that can't be written fails the act."""
    audit_id = AuditId.new()
    team_id = work.caller.team_id
    actor = Actor(ActorType.HUMAN, work.caller.user_id, work.caller.name)
    await work.connection.execute(
        insert(audit_log).values(
            team_id=team_id,
            id=audit_id,
            actor_type=actor.type.value,
            actor_user_id=actor.user_id,
            actor_label=actor.label,
            action=event.action,
            resource_type=event.resource_type,
            resource_id=event.resource_id,
            thread_id=event.thread_id,
            run_id=event.run_id,
            decision=None if event.decision is None else event.decision.value,
            reason=event.reason,
            metadata=dict(event.metadata),
            form=FORM,
            event_hash=event_hash(team_id, audit_id, actor, event, at),
            created_at=at,
        )
    )
    return audit_id

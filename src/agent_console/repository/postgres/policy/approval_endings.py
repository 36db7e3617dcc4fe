"""Approvals that end without anybody having decided them. Always part of a larger transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.tables import approvals, runs
from agent_console.domain.audit import Actor, AuditEvent, Facts
from agent_console.domain.ids import AgentId, ApprovalId, TeamId, ThreadId
from agent_console.domain.kinds import Decision
from agent_console.domain.states import ApprovalState, RunStatus
from agent_console.repository.operations.approvals import (
    APPROVAL_EXPIRED,
    APPROVAL_SUPERSEDED,
    APPROVAL_WITHDRAWN,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.live.notices import Notice
from agent_console.repository.postgres.work import Work

AT_ONCE = 500
# A run that ended well may have asked for more than it waited for; what any other one asked for nobody wants.
ENDED_IN_VAIN = (RunStatus.FAILED.value, RunStatus.CANCELLED.value, RunStatus.TIMEOUT.value)

TOLD = tuple(
    approvals.c[name] for name in ("id", "thread_id", "from_agent_id", "to_agent_id", "digest", "route_version")
)


@dataclass(frozen=True)
class Ending:
    state: ApprovalState
    action: str
    why: str


EXPIRED = Ending(ApprovalState.EXPIRED, APPROVAL_EXPIRED, "nobody decided in time")
ARCHIVED = Ending(ApprovalState.WITHDRAWN, APPROVAL_WITHDRAWN, "the thread was archived")
AGENT_GONE = Ending(ApprovalState.WITHDRAWN, APPROVAL_WITHDRAWN, "one of the agents was revoked or deleted")
RUN_OVER = Ending(ApprovalState.WITHDRAWN, APPROVAL_WITHDRAWN, "the run that asked ended before it was decided")
ROUTE_CHANGED = Ending(ApprovalState.SUPERSEDED, APPROVAL_SUPERSEDED, "the route between the agents was changed")

# By the key of runs, for each that waits.
ITS_RUN_IS_OVER = (
    select(runs.c.id)
    .where(
        runs.c.team_id == approvals.c.team_id,
        runs.c.id == approvals.c.parent_run_id,
        runs.c.status.in_(ENDED_IN_VAIN),
    )
    .exists()
)


def facts_of(row: Row[Any]) -> Facts:
    """What the audit trail keeps of a request: never its words."""
    return {
        "from_agent_id": str(row.from_agent_id),
        "to_agent_id": str(row.to_agent_id),
        "digest": row.digest,
        "policy_version": row.route_version,
    }


async def end_approvals(
    connection: AsyncConnection,
    team_id: TeamId,
    actor: Actor,
    at: datetime,
    ending: Ending,
    *which: ColumnElement[bool],
    at_most: int = AT_ONCE,
    pass_over_locked: bool = False,
) -> list[Notice]:
    """End those that wait, each with its audit row; locked in the order of their ids, so that nobody waits in a
    circle. Who is decided just now is waited for, or passed over, and then no longer waits. The answer is what
    has to be told once it is committed."""
    waiting = (
        select(*TOLD)
        .where(approvals.c.team_id == team_id, approvals.c.state == ApprovalState.PENDING.value, *which)
        .order_by(approvals.c.id)
        .limit(at_most)
        .with_for_update(skip_locked=pass_over_locked)
    )
    rows: Sequence[Row[Any]] = (await connection.execute(waiting)).all()
    if not rows:
        return []
    ids = [ApprovalId.of(row.id) for row in rows]
    await connection.execute(
        update(approvals)
        .where(approvals.c.team_id == team_id, approvals.c.id.in_(ids))
        .values(state=ending.state.value, decided_at=func.now(), decision_reason=ending.why)
    )
    for row in rows:
        event = AuditEvent(
            ending.action,
            "approval",
            str(row.id),
            metadata=facts_of(row),
            decision=Decision.BLOCK,
            reason=ending.why,
            thread_id=row.thread_id,
        )
        await audit.append_for(connection, team_id, actor, event, at)
    return [
        Notice.of(Topic.APPROVALS, row.id, thread_id=row.thread_id, agent_id=row.from_agent_id) for row in rows
    ]


async def _end_all(work: Work, at: datetime, ending: Ending, *which: ColumnElement[bool]) -> int:
    ended, actor = 0, audit.actor_of(work.caller, work.place)
    while notices := await end_approvals(work.connection, work.caller.team_id, actor, at, ending, *which):
        ended += len(notices)
        work.notices.extend(notices)
    return ended


async def withdraw_for_thread(work: Work, thread_id: ThreadId, at: datetime) -> int:
    """Nothing more happens in an archived thread. Served by approvals_pending_thread_idx."""
    return await _end_all(work, at, ARCHIVED, approvals.c.thread_id == thread_id)


async def withdraw_for_agent(work: Work, agent_id: AgentId, at: datetime) -> int:
    """An agent that was revoked or deleted asks for nothing any more, and can't be asked."""
    concerned = or_(approvals.c.from_agent_id == agent_id, approvals.c.to_agent_id == agent_id)
    return await _end_all(work, at, AGENT_GONE, concerned)


async def supersede_for_routes(work: Work, pairs: Sequence[tuple[AgentId, AgentId]], at: datetime) -> int:
    """The policy no longer asks for a person. Served by approvals_pair_idx."""
    if not pairs:
        return 0
    of_pairs = tuple_(approvals.c.from_agent_id, approvals.c.to_agent_id).in_(pairs)
    return await _end_all(work, at, ROUTE_CHANGED, of_pairs)

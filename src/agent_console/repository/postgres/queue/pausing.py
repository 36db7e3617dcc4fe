"""Pause the queue of a team, and let it go on."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, func, select, text, update

from agent_console.database.tables import teams
from agent_console.domain.audit import AuditEvent
from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import QueuePaused, QueuePausing
from agent_console.domain.records import Nothing
from agent_console.repository.operations.pausing import (
    QUEUE_PAUSE,
    QUEUE_RESUME,
    QUEUE_WAS_PAUSED,
    QUEUE_WAS_RESUMED,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.queue.paused import pause_of
from agent_console.repository.postgres.queue.release import release_jobs
from agent_console.repository.postgres.work import Work, answers

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

RELEASED_AT_ONCE = 500
# How long a claim that was begun may take, and how often it is looked whether all of them are over.
CLAIM_SECONDS = 2.0
LOOK_SECONDS = 0.02

NEXT_TRANSACTION = "select pg_snapshot_xmax(pg_current_snapshot())::text as id"
ALL_BEFORE_ENDED = "select pg_snapshot_xmin(pg_current_snapshot()) >= %(before)s::xid8 as ended"

# Served by jobs_held_idx. All jobs of these agents are released: the given number, and the rest of the last one's.
HOLDERS = text("""
    select distinct agent_id
      from (select agent_id from jobs
             where team_id = :team_id and status in ('assigned', 'running')
             order by agent_id
             limit :at_most) as held
""")


@answers_at_own_pace(QUEUE_PAUSE)
async def pause_queue(repository: "PostgresRepository", asked: QueuePausing) -> QueuePaused:
    """The pause and the first jobs it releases are one transaction; the others follow in batches.

    A claim that began before the pause may end after it: the last look is taken when all that ran then is over.
    """
    answer = await repository.in_one_transaction(QUEUE_PAUSE, _pause, asked)
    if asked.mode is not PauseMode.QUIESCE:
        return answer
    await _older_claims_ended(repository)
    released = answer.released
    while more := (await repository.in_one_transaction(QUEUE_PAUSE, _release_rest, asked)).released:
        released += more
    return answer.model_copy(update={"released": released})


async def _older_claims_ended(repository: "PostgresRepository") -> None:
    """Or a little time: somebody else's transaction may stay open for hours, and a claim's does not."""
    connections = repository.backend.connections
    (began,) = await connections.rows(NEXT_TRANSACTION, {})
    until = monotonic() + CLAIM_SECONDS
    while monotonic() < until:
        (over,) = await connections.rows(ALL_BEFORE_ENDED, {"before": began.id})
        if over.ended:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _pause(work: Work, asked: QueuePausing) -> QueuePaused:
    team = await _locked_team(work)
    changed = (team.pause_mode, team.pause_reason) != (asked.mode.value, asked.reason)
    if changed:
        await work.connection.execute(
            update(teams)
            .where(teams.c.id == work.caller.team_id)
            .values(
                pause_mode=asked.mode.value,
                pause_reason=asked.reason,
                # Another reason does not make it a shorter pause.
                paused_at=func.coalesce(teams.c.paused_at, func.now()),
                paused_by_user_id=work.caller.user_id,
                updated_at=func.now(),
            )
        )
    released = await _release(work, asked) if asked.mode is PauseMode.QUIESCE else 0
    if changed or released:
        await _tell_paused(work, team, asked, released)
    return QueuePaused(pause=await pause_of(work), released=released)


async def _release_rest(work: Work, asked: QueuePausing) -> QueuePaused:
    """Nothing, when somebody has let the queue go on meanwhile."""
    team = await _locked_team(work)
    if team.pause_mode != PauseMode.QUIESCE.value:
        return QueuePaused(pause=None)
    if released := await _release(work, asked):
        await _tell_paused(work, team, asked, released)
    return QueuePaused(pause=None, released=released)


async def _release(work: Work, asked: QueuePausing) -> int:
    team_id = work.caller.team_id
    holders = await work.connection.execute(HOLDERS, {"team_id": team_id, "at_most": RELEASED_AT_ONCE})
    agent_ids = [AgentId.of(row.agent_id) for row in holders]
    reason = f"the queue was paused: {asked.reason}"
    released = await release_jobs(work.connection, team_id, agent_ids, reason, costs_attempt=False)
    return len(released)


@answers(QUEUE_RESUME)
async def resume_queue(work: Work, asked: Nothing) -> QueuePaused:
    team = await _locked_team(work)
    if team.paused_at is None:
        return QueuePaused(pause=None)
    await work.connection.execute(
        update(teams)
        .where(teams.c.id == work.caller.team_id)
        .values(pause_mode=None, pause_reason=None, paused_at=None, paused_by_user_id=None, updated_at=func.now())
    )
    facts = {"mode": team.pause_mode, "seconds": int((team.at - team.paused_at).total_seconds())}
    event = AuditEvent(QUEUE_WAS_RESUMED, "queue", str(work.caller.team_id), metadata=facts)
    await audit.append(work, event, team.at)
    work.announce(Topic.EVERYTHING, work.caller.team_id)
    work.announce(Topic.WORK, work.caller.team_id)
    return QueuePaused(pause=None)


async def _locked_team(work: Work) -> Row[Any]:
    """Against others who pause or resume; whatever refers to the team may go on."""
    columns = (teams.c[name] for name in ("pause_mode", "pause_reason", "paused_at"))
    wanted: Select[Any] = (
        select(*columns, func.now().label("at"))
        .where(teams.c.id == work.caller.team_id)
        .with_for_update(key_share=True)
    )
    found: Row[Any] = (await work.connection.execute(wanted)).one()
    return found


async def _tell_paused(work: Work, team: Row[Any], asked: QueuePausing, released: int) -> None:
    facts = {"mode": asked.mode.value, "jobs": released}
    team_id = work.caller.team_id
    event = AuditEvent(QUEUE_WAS_PAUSED, "queue", str(team_id), metadata=facts, reason=asked.reason)
    await audit.append(work, event, team.at)
    work.announce(Topic.EVERYTHING, team_id)

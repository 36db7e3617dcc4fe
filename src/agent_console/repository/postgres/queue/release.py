"""Take back what an agent holds: its jobs and its sessions. Always part of a larger transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import bindparam, insert, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import UUID as UUIDColumn
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.tables import job_events
from agent_console.domain.ids import AgentId, JobEventId, JobId, LaneId, SessionId, TeamId
from agent_console.domain.kinds import EventLevel
from agent_console.domain.states import JobStatus

# With the silence before it, and the time until that is noticed, a lost agent's job is another's in two minutes.
RETRY_AFTER_SECONDS = 20
RETRY_SPREAD = 0.1
ATTEMPTS_MOST = 100
"""As jobs_max_attempts_bounds has it; a job that was given back so often keeps its attempt."""

# Served by jobs_held_idx; rows are locked in the order of their ids, so that two releases never wait for each
# other in a circle. The first start is kept, as it is over every try. The attempt moves on even where it costs
# none, and the tries are one more then: the same agent may get the job again, and what it still does for the first
# attempt is fenced off.
RELEASE = text(f"""
    with held as (
        select id, status, attempt, claimed_by,
               case when cancel_requested_at is not null then 'cancelled'
                    when :costs_attempt and attempt >= max_attempts then 'dead_letter'
                    else 'queued' end as becomes,
               :costs_attempt or max_attempts < {ATTEMPTS_MOST} as fenced,
               case when :costs_attempt then now() + interval '{RETRY_AFTER_SECONDS} seconds'
                    * (1 + {RETRY_SPREAD} * (2 * random() - 1)) end as again_at
          from jobs
         where team_id = :team_id and agent_id = any (:agent_ids) and status in ('assigned', 'running')
         order by id
           for update
    )
    update jobs j
       set status = h.becomes,
           agent_id = case when h.becomes = 'queued' then null else j.agent_id end,
           assigned_at = case when h.becomes = 'queued' then null else j.assigned_at end,
           progress = case when h.becomes = 'queued' then null else j.progress end,
           claimed_by = null,
           lease_expires_at = null,
           attempt = case when h.becomes = 'queued' and h.fenced then j.attempt + 1 else j.attempt end,
           max_attempts = j.max_attempts
                          + case when h.becomes = 'queued' and h.fenced and not :costs_attempt then 1 else 0 end,
           next_attempt_at = case when h.becomes = 'queued' then h.again_at end,
           look_at = case when h.becomes = 'queued' then coalesce(h.again_at, '-infinity') end,
           finished_at = case when h.becomes <> 'queued' then now() end,
           error_code = case when h.becomes = 'dead_letter' then :code else j.error_code end,
           error_message = case when h.becomes = 'dead_letter' then :reason else j.error_message end,
           updated_at = now()
      from held h
     where j.team_id = :team_id and j.id = h.id
 returning j.id, h.status as was, j.status, h.attempt, h.claimed_by, j.lane_id, j.bound_agent_id
""").bindparams(bindparam("agent_ids", type_=ARRAY(UUIDColumn)))  # noqa: S608

# Served by sessions_open_idx.
CLOSE_SESSIONS = text("""
    with closed as (
        update sessions
           set status = 2, closed_at = now(), close_reason = :reason
         where team_id = :team_id and agent_id = :agent_id and status = 1
     returning id
    ), ended as (
        update agent_runtime
           set last_used_at = now()
         where team_id = :team_id and agent_id = :agent_id and exists (select from closed)
    )
    select id from closed order by id
""")


@dataclass(frozen=True)
class Released:
    job_id: JobId
    status: JobStatus
    place: LaneId | AgentId


def place_of(lane_id: UUID, bound_agent_id: UUID | None) -> LaneId | AgentId:
    """Who has to hear that a job of this lane may be claimed: those of the lane, or the one agent it waits for."""
    return LaneId.of(lane_id) if bound_agent_id is None else AgentId.of(bound_agent_id)


async def release_jobs(
    connection: AsyncConnection, team_id: TeamId, agent_ids: Sequence[AgentId], reason: str, *, costs_attempt: bool
) -> list[Released]:
    """Give the jobs of these agents back to the queue, each with an event that tells why.

    With `costs_attempt` the next try waits a little and, if this was the last, the job is a dead letter. A job
    that was asked to stop ends cancelled and never runs again.
    """
    facts = {"team_id": team_id, "agent_ids": list(agent_ids), "reason": reason, "costs_attempt": costs_attempt}
    rows = (await connection.execute(RELEASE, facts | {"code": "agent_lost"})).all()
    if rows:
        events = [
            {
                "team_id": team_id,
                "id": JobEventId.new(),
                "job_id": row.id,
                "level": EventLevel.WARN.value if costs_attempt else EventLevel.INFO.value,
                "message": f"{row.was} to {row.status}: {reason}",
                "payload": {"from": row.was, "to": row.status, "claimed_by": row.claimed_by},
                "attempt": row.attempt,
            }
            for row in rows
        ]
        await connection.execute(insert(job_events), events)
    return [
        Released(JobId.of(row.id), JobStatus(row.status), place_of(row.lane_id, row.bound_agent_id))
        for row in rows
    ]


async def close_sessions(
    connection: AsyncConnection, team_id: TeamId, agent_id: AgentId, reason: str
) -> list[SessionId]:
    facts = {"team_id": team_id, "agent_id": agent_id, "reason": reason}
    return [SessionId.of(row.id) for row in await connection.execute(CLOSE_SESSIONS, facts)]

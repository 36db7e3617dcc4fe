"""The duty to end runs whose deadline is over while their job still waits: nobody came for it in time.

A job that an agent holds is ended by the queue itself, which looks at the deadline too.
"""

from sqlalchemy import text

from agent_console.domain.audit import SYSTEM, AuditEvent
from agent_console.domain.duties import RUNS
from agent_console.domain.ids import AgentId, JobId, RunId, TeamId, ThreadId
from agent_console.repository.operations.runs import RUN_TIMED_OUT
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.duties.declared import Duty, announce_all, for_each_team, in_turn
from agent_console.repository.postgres.repository import Backend

BATCH = 200

# One look into runs_unfinished_idx for each team; those that an agent holds are few, and soon ended.
TEAMS_WITH_OVERDUE = text("""
    select t.id as team_id
      from teams t
     cross join lateral (select from runs r
                           join jobs j on j.team_id = r.team_id and j.run_id = r.id
                          where r.team_id = t.id and r.ended_at is null and r.deadline_at <= now()
                            and j.status in ('queued', 'scheduled')
                          order by r.deadline_at
                          limit 1) as overdue
""")

# The run is ended first: a waiting job can only be cancelled, and its run would follow it into that.
END_OVERDUE = text("""
    with overdue as (
        select r.id as run_id, r.thread_id, r.requested_by_agent_id, j.id as job_id, j.status, j.attempt
          from runs r
          join jobs j on j.team_id = r.team_id and j.run_id = r.id
         where r.team_id = :team_id and r.ended_at is null and r.deadline_at <= now()
           and j.status in ('queued', 'scheduled')
         order by r.deadline_at
         limit :batch
           for no key update of j skip locked
    ), ended as (
        update runs r
           set status = 'timeout', ended_at = now(), updated_at = now(),
               error_code = 'deadline', error_message = 'the deadline of its run is over'
          from overdue o
         where r.team_id = :team_id and r.id = o.run_id
     returning r.id
    ), gone as (
        update jobs j
           set status = 'cancelled', finished_at = now(), updated_at = now(),
               next_attempt_at = null, look_at = null,
               error_code = 'deadline', error_message = 'the deadline of its run is over'
          from overdue o
         where j.team_id = :team_id and j.id = o.job_id and exists (select from ended e where e.id = o.run_id)
     returning j.id
    ), told as (
        insert into job_events (team_id, id, job_id, level, message, payload, attempt)
        select :team_id, new_id(), o.job_id, 'error', o.status || ' to cancelled: the deadline of its run is over',
               jsonb_build_object('from', o.status, 'to', 'cancelled'), o.attempt
          from overdue o join gone g on g.id = o.job_id
    )
    select o.run_id, o.thread_id, o.requested_by_agent_id, o.job_id, o.attempt, now() as at
      from overdue o join gone g on g.id = o.job_id
     order by o.run_id
""")


async def end_overdue_runs(backend: Backend) -> int | None:
    return await for_each_team(backend, TEAMS_WITH_OVERDUE, _end, BATCH)


async def _end(backend: Backend, team_id: TeamId) -> int | None:
    async with in_turn(backend, RUNS.name) as connection:
        if connection is None:
            return None
        rows = (await connection.execute(END_OVERDUE, {"team_id": team_id, "batch": BATCH})).all()
        for row in rows:
            run_id = RunId.of(row.run_id)
            event = AuditEvent(
                RUN_TIMED_OUT,
                "run",
                str(run_id),
                metadata={"job_id": str(JobId.of(row.job_id)), "attempt": row.attempt},
                thread_id=ThreadId.of(row.thread_id),
                run_id=run_id,
            )
            await audit.append_for(connection, team_id, SYSTEM, event, row.at)
    for row in rows:
        run_id, thread_id, asked_by = RunId.of(row.run_id), ThreadId.of(row.thread_id), row.requested_by_agent_id
        agent_id = None if asked_by is None else AgentId.of(asked_by)
        backend.announcer.announce(team_id, Topic.RUNS, run_id, thread_id=thread_id, agent_id=agent_id)
    announce_all(backend, team_id, Topic.JOBS, (JobId.of(row.job_id) for row in rows))
    return len(rows)


END_OVERDUE_RUNS = Duty.of(RUNS, end_overdue_runs)

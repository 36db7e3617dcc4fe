"""Reports on jobs that an agent holds: it starts, keeps its lease, tells where it is and what happened.

Whatever is waiting goes into one statement, one report for each job at a time. Nothing here ends a job.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agent_console.domain.ids import JobId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.acting import Acting
from agent_console.repository.postgres.live.changes import Announcer
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.gathering import Gatherer

# The job's row is locked before its story gets a line, so that the order of the lines is the order in which they
# can be read. A renewal moves no indexed column, unless the lease becomes shorter: the row stays within its page.
# `offset 0` keeps the planner from starting anywhere but at the reports.
REPORT = """
    with said as (
        select * from jsonb_to_recordset(cast(%(reports)s as jsonb)) as s (
            n integer, agent_id uuid, key_hash text, job_id uuid, attempt integer, starts boolean, renews boolean,
            lease integer, progress jsonb, events jsonb)
        offset 0
    ), known as (
        select s.*, a.id as found_agent, a.revoked_at, a.system_user_id, a.worker_id
          from said s
          left join agents a
            on a.team_id = %(team_id)s and a.id = s.agent_id and a.deleted_at is null
               and (s.key_hash is null or a.api_key_hash = s.key_hash
                    or (a.previous_key_hash = s.key_hash and a.previous_key_ends_at > now()))
    ), held as (
        select j.id, j.status, j.agent_id, j.attempt, j.lease_seconds, j.lease_expires_at, j.finished_at,
               j.cancel_requested_at, j.progress
          from jobs j
         where j.team_id = %(team_id)s and j.id in (select k.job_id from known k where k.found_agent is not null)
         order by j.id
           for no key update
    ), judged as (
        select k.*, h.status as was, h.lease_expires_at, h.cancel_requested_at is not null as cancelling,
               case when k.found_agent is null then 'unknown'
                    when k.revoked_at is not null then 'revoked'
                    when h.id is null then 'missing'
                    when h.agent_id is distinct from k.agent_id or h.attempt <> k.attempt then 'not_owner'
                    when h.finished_at is not null then 'ended'
                    else 'ok' end as verdict,
               coalesce(k.lease, h.lease_seconds, 120) as lease_length,
               k.starts and h.status = 'assigned' as begins
          from known k
          left join held h on h.id = k.job_id
    ), changed as (
        update jobs j
           set status = case when d.begins then 'running' else j.status end,
               started_at = case when d.begins then coalesce(j.started_at, now()) else j.started_at end,
               lease_expires_at = case when d.renews then now() + make_interval(secs => d.lease_length)
                                       else j.lease_expires_at end,
               look_at = case when d.renews then least(j.look_at, now() + make_interval(secs => d.lease_length))
                              else j.look_at end,
               progress = coalesce(d.progress, j.progress),
               updated_by_user_id = case when d.begins or d.progress is not null then d.system_user_id
                                         else j.updated_by_user_id end,
               updated_at = now()
          from judged d
         where j.team_id = %(team_id)s and j.id = d.job_id
           and d.verdict = 'ok' and (d.begins or d.renews or d.progress is not null)
     returning j.id, j.status, j.lease_expires_at
    ), told as (
        insert into job_events (team_id, id, job_id, level, message, payload, attempt, created_by_user_id)
        select %(team_id)s, new_id(), l.job_id, l.level, l.message, l.payload, l.attempt, l.system_user_id
          from (select d.n, 0 as place, d.job_id, 'info' as level, 'assigned to running' as message,
                       jsonb_build_object('from', 'assigned', 'to', 'running', 'claimed_by', d.worker_id)
                       as payload,
                       d.attempt, d.system_user_id
                  from judged d where d.verdict = 'ok' and d.begins
                 union all
                select d.n, 1, d.job_id, 'info', 'lease renewed for ' || d.lease_length || ' s', null, d.attempt,
                       d.system_user_id
                  from judged d where d.verdict = 'ok' and d.renews
                 union all
                select d.n, 1 + e.place, d.job_id, e.line ->> 'level', e.line ->> 'message',
                       nullif(e.line -> 'payload', 'null'), d.attempt, d.system_user_id
                  from judged d
                  cross join lateral jsonb_array_elements(d.events) with ordinality as e (line, place)
                 where d.verdict = 'ok' and d.events is not null) as l
         order by l.n, l.place
    )
    select d.n, d.verdict, coalesce(c.status, d.was) as status, d.cancelling,
           coalesce(c.lease_expires_at, d.lease_expires_at) as lease_expires_at
      from judged d
      left join changed c on c.id = d.job_id
     order by d.n
"""


@dataclass(eq=False)
class Report:
    acting: Acting
    job_id: JobId
    attempt: int
    starts: bool = False
    renews: bool = False
    lease: int | None = None
    progress: dict[str, Any] | None = None
    events: list[dict[str, Any]] | None = None
    sent: bool = field(default=False, compare=False)

    def facts(self, place: int) -> dict[str, object]:
        return {
            "n": place,
            "agent_id": UUID(int=self.acting.agent_id.int).hex,
            "key_hash": self.acting.key_hash,
            "job_id": UUID(int=self.job_id.int).hex,
            "attempt": self.attempt,
            "starts": self.starts,
            "renews": self.renews,
            "lease": self.lease,
            "progress": self.progress,
            "events": self.events,
        }


class HeldJobs:
    """What all agents of one process share: their reports go into the next statement together."""

    def __init__(self, connections: QueueConnections, announcer: Announcer) -> None:
        self._connections = connections
        self._announcer = announcer
        self._gatherer = Gatherer[TeamId, Report, Any](self._write)
        self._progress: dict[JobId, tuple[Report, asyncio.Task[Any]]] = {}

    async def report(self, report: Report) -> Any:
        """The row of REPORT that answers it."""
        return await self._gatherer.add(report.acting.team_id, report.job_id, report)

    async def progress(self, report: Report) -> Any:
        """The last word counts: who still waits to be written down is told what became of the newest."""
        earlier, writing = self._progress.get(report.job_id, (None, None))
        if earlier is None or writing is None or earlier.sent or not _same_hand(earlier, report):
            writing = asyncio.create_task(self.report(report))
            writing.add_done_callback(lambda done: self._written(report, done))
            self._progress[report.job_id] = (report, writing)
        else:
            earlier.progress = report.progress
        return await asyncio.shield(writing)

    def _written(self, report: Report, done: "asyncio.Task[Any]") -> None:
        if self._progress.get(report.job_id, (None, None))[0] is report:
            del self._progress[report.job_id]
        if not done.cancelled():
            done.exception()

    async def _write(self, team_id: TeamId, reports: Sequence[Report]) -> list[Any]:
        for report in reports:
            report.sent = True
        said = json.dumps([report.facts(place) for place, report in enumerate(reports, 1)])
        rows = await self._connections.rows(REPORT, {"team_id": team_id, "reports": said})
        for report, row in zip(reports, rows, strict=True):
            if row.verdict == "ok":
                self._announcer.announce(team_id, Topic.JOBS, report.job_id)
        return list(rows)

    async def close(self) -> None:
        await self._gatherer.close()


def _same_hand(one: Report, other: Report) -> bool:
    return (one.acting, one.attempt) == (other.acting, other.attempt)

"""Move waiting jobs forward or back in the queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, update

from agent_console.database.tables import jobs
from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.ids import TeamId
from agent_console.domain.job_acts import WAITING
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.job_changes import Done, JobRow, Line, Sorted, tell_stories
from agent_console.repository.postgres.work import Work


def not_waiting(row: JobRow, what: str) -> ConsoleError:
    return Conflict(
        f"Job {row.id} is {row.status}; only a waiting job can be {what}.",
        hint="Waiting jobs are queued or scheduled.",
        details={"state": row.status},
    )


@dataclass(frozen=True)
class Reprioritise:
    priority: int
    reason: str | None = None
    states: frozenset[JobStatus] = WAITING

    def narrowed(self, team_id: TeamId, job_id: ColumnElement[Any]) -> ColumnElement[bool] | None:
        return None

    async def sort(self, work: Work, rows: Sequence[JobRow]) -> Sorted:
        found = Sorted()
        for row in rows:
            if JobStatus(row.status) not in WAITING:
                found.refuse(row, not_waiting(row, "reprioritised"))
            elif row.priority == self.priority:
                found.unchanged.append(row)
            else:
                found.ready.append(row)
        return found

    async def do(self, work: Work, rows: Sequence[JobRow]) -> list[Done]:
        await work.connection.execute(
            update(jobs)
            .where(jobs.c.team_id == work.caller.team_id, jobs.c.id.in_([row.id for row in rows]))
            .values(priority=self.priority, updated_by_user_id=work.caller.user_id, updated_at=func.now())
        )
        await tell_stories(work, [self._line(row) for row in rows])
        # Where a lane begins may lie further ahead now than anybody has looked.
        work.announce(Topic.WORK, work.caller.team_id)
        return [Done(row.id, {"from": row.priority, "to": self.priority}) for row in rows]

    def _line(self, row: JobRow) -> Line:
        facts = {"priority_from": row.priority, "priority_to": self.priority}
        return Line(row.id, f"priority {row.priority} to {self.priority}", facts, row.attempt)

"""Cancel jobs: those that wait end at once, those that an agent holds are asked to stop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, update

from agent_console.database.tables import jobs
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import TeamId
from agent_console.domain.job_acts import CANCELLABLE, WAITING
from agent_console.domain.states import JOB_MOVES, JobStatus, require_move
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.job_changes import Done, JobRow, Line, Sorted, tell_stories
from agent_console.repository.postgres.work import Work

CANCELLING = "cancelling"
ENDED: dict[str, object] = {
    "status": JobStatus.CANCELLED.value,
    "finished_at": func.now(),
    "next_attempt_at": None,
    "look_at": None,
}
"""What becomes of a waiting job that is cancelled."""


def asked_to_stop(work: Work, reason: str | None) -> dict[str, object]:
    return {
        "cancel_requested_at": func.now(),
        "cancel_requested_by_user_id": work.caller.user_id,
        "cancel_reason": reason,
        "updated_by_user_id": work.caller.user_id,
        "updated_at": func.now(),
    }


@dataclass(frozen=True)
class Cancel:
    reason: str | None
    states: frozenset[JobStatus] = CANCELLABLE

    def narrowed(self, team_id: TeamId, job_id: ColumnElement[Any]) -> ColumnElement[bool] | None:
        return None

    async def sort(self, work: Work, rows: Sequence[JobRow]) -> Sorted:
        found = Sorted()
        for row in rows:
            status = JobStatus(row.status)
            if status is JobStatus.CANCELLED or (row.cancel_requested_at is not None and status in CANCELLABLE):
                found.unchanged.append(row)
                continue
            try:
                require_move(JOB_MOVES, f"Job {row.id}", status, JobStatus.CANCELLED)
            except Conflict as ended:
                found.refuse(row, ended)
            else:
                found.ready.append(row)
        return found

    async def do(self, work: Work, rows: Sequence[JobRow]) -> list[Done]:
        waiting = [row for row in rows if JobStatus(row.status) in WAITING]
        held = [row for row in rows if JobStatus(row.status) not in WAITING]
        await self._write(work, waiting, **ENDED)
        await self._write(work, held)
        await tell_stories(work, [self._line(row) for row in rows])
        for row in waiting:
            # The scheduled job is what a collection's next refresh is read from.
            if row.collection_id is not None:
                work.announce(Topic.COLLECTIONS, row.collection_id)
        return [Done(row.id, {"from": row.status, "to": _becomes(row)}) for row in rows]

    async def _write(self, work: Work, rows: Sequence[JobRow], **values: object) -> None:
        if not rows:
            return
        await work.connection.execute(
            update(jobs)
            .where(jobs.c.team_id == work.caller.team_id, jobs.c.id.in_([row.id for row in rows]))
            .values(**asked_to_stop(work, self.reason), **values)
        )

    def _line(self, row: JobRow) -> Line:
        why = f": {self.reason}" if self.reason else ""
        facts = {"from": row.status, "to": _becomes(row)}
        words = "its agent is asked to stop" if _becomes(row) == CANCELLING else f"{row.status} to cancelled"
        return Line(row.id, words + why, facts, row.attempt)


def _becomes(row: JobRow) -> str:
    return JobStatus.CANCELLED.value if JobStatus(row.status) in WAITING else CANCELLING

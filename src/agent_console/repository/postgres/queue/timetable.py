"""The jobs a collection makes: one scheduled ahead while it has a timetable, one now when somebody asks.

Every function here is called by the holder of the collection's row lock; that, and jobs_scheduled_uq, keep
it at one scheduled job per collection and tool. Locks are taken in one order, the collection before its jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import JsonValue
from sqlalchemy import Row, func, insert, select, update

from agent_console.database.tables import job_events, jobs
from agent_console.domain.errors import Internal
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, JobEventId, JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import EventLevel
from agent_console.domain.states import JOB_HELD, JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.cancelling import ENDED, asked_to_stop
from agent_console.repository.postgres.queue.jobs import enqueue
from agent_console.repository.postgres.work import Work

REFRESH = "collection_refresh"
# An overdue refresh is given a moment, so that a slip of the finger can still be taken back.
SOONEST = timedelta(minutes=1)
WAITING = (JobStatus.SCHEDULED, JobStatus.QUEUED)
JOB_COLUMNS = tuple(
    jobs.c[name]
    for name in (
        *("id", "type", "status", "payload", "tool", "scheduled_for", "attempt"),
        *("connector_id", "bound_agent_id"),
    )
)


@dataclass(frozen=True)
class Timetable:
    """What decides when a collection is refreshed, and by whom; `at` is the transaction's own time."""

    collection_id: CollectionId
    location: str | None
    tool: str | None
    connector_id: ConnectorId | None
    bound_agent_id: AgentId | None
    interval: timedelta | None
    last_refresh_at: datetime | None
    at: datetime

    @classmethod
    def of(cls, row: Row[Any]) -> Self:
        runs = row.auto_refresh and row.refresh_interval_hours is not None
        return cls(
            collection_id=row.id,
            location=row.location,
            tool=row.tool,
            connector_id=row.connector_id,
            bound_agent_id=row.bound_agent_id,
            interval=timedelta(hours=row.refresh_interval_hours) if runs else None,
            last_refresh_at=row.last_refresh_at,
            at=row.at,
        )

    @property
    def payload(self) -> dict[str, JsonValue]:
        return {} if self.location is None else {"location": self.location}

    @property
    def due(self) -> datetime | None:
        """One interval after the last refresh, or after now when there was none."""
        if self.interval is None:
            return None
        return max((self.last_refresh_at or self.at) + self.interval, self.at + SOONEST)

    def job(self, scheduled_for: datetime | None) -> NewJob:
        return NewJob(
            type=REFRESH,
            payload=self.payload,
            tool=self.tool,
            collection_id=self.collection_id,
            required_capabilities=() if self.tool is None else (f"tool:{self.tool}",),
            scheduled_for=scheduled_for,
        )

    def fits(self, job: Row[Any]) -> bool:
        """Whether the job is the one that would be made now, but for its time."""
        wanted = (REFRESH, self.payload, self.tool, self.connector_id, self.bound_agent_id)
        return wanted == (job.type, job.payload, job.tool, job.connector_id, job.bound_agent_id)


@dataclass(frozen=True)
class Refresh:
    job_id: JobId
    cancelled: int
    changed: bool


async def keep_timetable(work: Work, timetable: Timetable, *, new_rhythm: bool) -> bool:
    """Make, move or cancel the scheduled job, so that there is one exactly when there should be.

    Its time stays what it is unless the rhythm is new.
    """
    due = timetable.due
    scheduled = await _scheduled(work, timetable)
    if due is not None and not new_rhythm and scheduled:
        due = scheduled[0].scheduled_for
    kept = next((job for job in scheduled if due is not None and timetable.fits(job)), None)
    leaving = [job for job in scheduled if job is not kept]
    await _cancel(work, leaving, "the collection's timetable has changed")
    if due is None:
        return False
    if kept is None:
        await _enqueued(work, timetable, due)
    elif kept.scheduled_for != due:
        await _move(work, kept, due)
    return True


async def refresh_now(work: Work, timetable: Timetable) -> Refresh:
    """Instead of the scheduled job; what is queued already is not queued again."""
    scheduled = await _scheduled(work, timetable)
    waiting = await _jobs(work, timetable.collection_id, (JobStatus.QUEUED,))
    queued = next((job for job in waiting if timetable.fits(job)), None)
    await _cancel(work, scheduled, "refreshed by hand")
    job_id = queued.id if queued is not None else await _enqueued(work, timetable, None)
    return Refresh(job_id, len(scheduled), changed=queued is None or bool(scheduled))


async def end_jobs(work: Work, collection_id: CollectionId, name: str) -> tuple[int, int]:
    """How many waiting jobs were cancelled, and how many run on with a warning."""
    waiting = await _jobs(work, collection_id, WAITING)
    held = await _jobs(work, collection_id, tuple(JOB_HELD))
    await _cancel(work, waiting, f"collection {name} was deleted")
    message = f"collection {name} was deleted while this job runs"
    await _tell(work, held, message, EventLevel.WARN)
    return len(waiting), len(held)


async def _scheduled(work: Work, timetable: Timetable) -> list[Row[Any]]:
    """The collection's refresh ahead; whatever else is scheduled for its tool stands in the same place."""
    found = await _jobs(work, timetable.collection_id, (JobStatus.SCHEDULED,))
    return [job for job in found if job.type == REFRESH or job.tool == timetable.tool]


async def _jobs(work: Work, collection_id: CollectionId, states: Sequence[JobStatus]) -> Sequence[Row[Any]]:
    """Locked, oldest first. Served by jobs_scheduled_uq for scheduled jobs, else by jobs_collection_idx."""
    wanted = (
        select(*JOB_COLUMNS)
        .where(
            jobs.c.team_id == work.caller.team_id,
            jobs.c.collection_id == collection_id,
            jobs.c.status.in_([state.value for state in states]),
        )
        .order_by(jobs.c.id)
        .with_for_update()
    )
    return (await work.connection.execute(wanted)).all()


async def _enqueued(work: Work, timetable: Timetable, due: datetime | None) -> JobId:
    made = await enqueue(work, timetable.job(due))
    if made is None:
        raise Internal("A refresh has no idempotency key, and yet it was refused as a repetition.")
    return made.id


async def _move(work: Work, job: Row[Any], due: datetime) -> None:
    await work.connection.execute(
        update(jobs)
        .where(jobs.c.team_id == work.caller.team_id, jobs.c.id == job.id)
        .values(scheduled_for=due, look_at=due, updated_by_user_id=work.caller.user_id, updated_at=func.now())
    )
    await _tell(work, [job], f"moved to {due:%Y-%m-%d %H:%M} UTC: the collection's timetable has changed")


async def _cancel(work: Work, leaving: Sequence[Row[Any]], reason: str) -> None:
    if not leaving:
        return
    await work.connection.execute(
        update(jobs)
        .where(jobs.c.team_id == work.caller.team_id, jobs.c.id.in_([job.id for job in leaving]))
        .values(**ENDED, **asked_to_stop(work, reason))
    )
    await _tell(work, leaving, f"cancelled: {reason}")


async def _tell(work: Work, told: Sequence[Row[Any]], message: str, level: EventLevel = EventLevel.INFO) -> None:
    """The same line in the story of each job, and a word to those who watch."""
    if not told:
        return
    lines = [
        {
            "team_id": work.caller.team_id,
            "id": JobEventId.new(),
            "job_id": job.id,
            "level": level.value,
            "message": message,
            "attempt": job.attempt,
            "created_by_user_id": work.caller.user_id,
        }
        for job in told
    ]
    await work.connection.execute(insert(job_events), lines)
    for job in told:
        work.announce(Topic.JOBS, job.id)

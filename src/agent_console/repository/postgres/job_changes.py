"""How an act on jobs is done, to one as to five hundred: lock them, sort out which it fits, change those."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Row, func, insert, select

from agent_console.database.tables import job_events, jobs
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import JobEventId, JobId, TeamId
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.work import Work

Facts = Mapping[str, str | int | bool | None]
JobRow = Row[Any]

ACTED_ON = tuple(
    jobs.c[name]
    for name in (
        *("id", "type", "status", "priority", "attempt", "created_at", "cancel_requested_at"),
        *("required_capabilities", "repository", "connector_id", "bound_agent_id", "collection_id", "run_id"),
        "signed",
    )
)


@dataclass
class Sorted:
    """Which jobs an act fits, which are so already, and which it is refused for."""

    ready: list[JobRow] = field(default_factory=list)
    unchanged: list[JobRow] = field(default_factory=list)
    refused: list[tuple[JobId, ConsoleError]] = field(default_factory=list)

    def refuse(self, row: JobRow, error: ConsoleError) -> None:
        self.refused.append((row.id, error))


@dataclass(frozen=True)
class Done:
    """One job that was acted on: what to show of it afterwards, and what the audit trail keeps."""

    shown: JobId
    facts: Facts


class Act(Protocol):
    """Something an operator does to jobs. `states` are those in which it can be done."""

    @property
    def states(self) -> frozenset[JobStatus]: ...

    @property
    def reason(self) -> str | None: ...

    def narrowed(self, team_id: TeamId, job_id: ColumnElement[Any]) -> ColumnElement[bool] | None:
        """What else must hold for a job that a filter finds."""

    async def sort(self, work: Work, rows: Sequence[JobRow]) -> Sorted: ...

    async def do(self, work: Work, rows: Sequence[JobRow]) -> list[Done]:
        """Change locked jobs that were sorted as ready, each with a line in its story."""
        ...


def no_job(job_id: JobId) -> ConsoleError:
    return NotFound(f"There is no job {job_id}.", hint="List them: agent-console jobs list")


async def jobs_named(work: Work, ids: Sequence[JobId], *, lock: bool) -> list[JobRow]:
    """By primary key, and locked in the order of their ids: two who act on many never wait in a circle.

    The lock is also what puts the lines of a story in the order in which they are committed.
    """
    wanted = (
        select(*ACTED_ON, func.now().label("at"))
        .where(jobs.c.team_id == work.caller.team_id, jobs.c.id.in_(ids))
        .order_by(jobs.c.id)
    )
    found = await work.connection.execute(wanted.with_for_update() if lock else wanted)
    rows: Sequence[Any] = found.all()
    return list(rows)


@dataclass(frozen=True)
class Line:
    job_id: JobId
    message: str
    facts: Mapping[str, str | int | None]
    attempt: int | None


async def tell_stories(work: Work, lines: Sequence[Line]) -> None:
    """A line in the story of each job, and a word to those who watch."""
    if not lines:
        return
    rows = [
        {
            "team_id": work.caller.team_id,
            "id": JobEventId.new(),
            "job_id": line.job_id,
            "message": line.message,
            "payload": dict(line.facts),
            "attempt": line.attempt,
            "created_by_user_id": work.caller.user_id,
        }
        for line in lines
    ]
    await work.connection.execute(insert(job_events), rows)
    for line in lines:
        work.announce(Topic.JOBS, line.job_id)

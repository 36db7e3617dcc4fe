"""How an act on jobs is done, to one as to five hundred: lock them, sort out which it fits, change those."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Integer, Row, Text, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from agent_console.database.tables import jobs
from agent_console.domain.audit import Facts
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import JobEventId, JobId, TeamId
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.work import Work

JobRow = Row[Any]

ACTED_ON = tuple(
    jobs.c[name]
    for name in (
        *("id", "type", "status", "priority", "attempt", "created_at", "cancel_requested_at"),
        *("required_capabilities", "repository", "connector_id", "bound_agent_id", "collection_id", "run_id"),
        "signed",
    )
)

# One statement for all lines: sent one by one they cost more than everything else that is done to the jobs.
TELL = text("""
    insert into job_events (team_id, id, job_id, message, payload, attempt, created_by_user_id)
    select :team_id, l.id, l.job_id, l.message, cast(l.payload as jsonb), l.attempt, :user_id
      from unnest(:ids, :job_ids, :messages, :payloads, :attempts)
           with ordinality as l (id, job_id, message, payload, attempt, place)
     order by l.place
""").bindparams(
    bindparam("ids", type_=ARRAY(UUID)),
    bindparam("job_ids", type_=ARRAY(UUID)),
    bindparam("messages", type_=ARRAY(Text)),
    bindparam("payloads", type_=ARRAY(Text)),
    bindparam("attempts", type_=ARRAY(Integer)),
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
    facts = {
        "ids": [JobEventId.new() for _ in lines],
        "job_ids": [line.job_id for line in lines],
        "messages": [line.message for line in lines],
        "payloads": [json.dumps(line.facts) for line in lines],
        "attempts": [line.attempt for line in lines],
    }
    whose = {"team_id": work.caller.team_id, "user_id": work.caller.user_id}
    await work.connection.execute(TELL, facts | whose)
    for line in lines:
        work.announce(Topic.JOBS, line.job_id)

"""Runs: one agent is asked to act in a thread; and the tree that grows when it asks others."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field, JsonValue

from agent_console.domain.agent_changes import Reason
from agent_console.domain.filters import FILTER_LENGTH, Filterable, Known, Qualifier
from agent_console.domain.ids import AgentId, ApprovalId, JobId, MessageId, RunId, ThreadId, UserId
from agent_console.domain.kinds import ParticipantType
from agent_console.domain.records import Instant, NotBlank, PageRequest, Record, Request
from agent_console.domain.states import RUN_MOVES, RunStatus, is_final

RUN_SECONDS = 1_800
RUN_SECONDS_MOST = 604_800
TRACE_ROWS = 500

IdempotencyKey = Annotated[str, Field(min_length=1, max_length=255), NotBlank]


class Run(Record):
    """`delegation_path` names the agents that passed the request on, the first first; the target is not among
    them, so that a run that a person asked for has none."""

    columns: ClassVar[tuple[str, ...]] = ("id", "status", "target", "requested_by", "created_at", "ended_at")

    id: RunId
    seq: int
    thread_id: ThreadId
    requested_by_type: ParticipantType
    requested_by_user_id: UserId | None
    requested_by_agent_id: AgentId | None
    requested_by: str | None
    target_agent_id: AgentId
    target: str | None = Field(description="The name of the agent that acts.")
    status: RunStatus
    input_message_id: MessageId | None
    trace_id: UUID | None
    parent_run_id: RunId | None
    delegation_path: tuple[AgentId, ...]
    route_version: int | None = Field(description="The version of the route that let it pass.")
    job_id: JobId | None
    deadline_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    cancel_requested_at: Instant | None
    error_code: str | None
    error_message: str | None
    output_summary: dict[str, JsonValue]
    created_at: Instant
    updated_at: Instant

    @property
    def shown_status(self) -> str:
        """A run that was asked to stop is shown as cancelling until its agent says so."""
        if self.cancel_requested_at and self.ended_at is None:
            return "cancelling"
        return self.status.value


def can_be_cancelled(run: Run) -> bool:
    return not is_final(RUN_MOVES, run.status) and run.cancel_requested_at is None


class RunAsked(Request):
    run_id: RunId


_RUN_QUALIFIERS = (
    Qualifier("status", "its state", listed=tuple(RunStatus), also="state"),
    Qualifier("agent", "who acts, by name or id", known=Known.AGENTS),
    Qualifier("age", "since it was asked for, such as >1h or <2d", is_age=True),
)
_RUN_WORDS = "the name of its agent and how its error begins"
THREAD_RUN_FILTERS = Filterable(_RUN_QUALIFIERS, words=_RUN_WORDS)
RUN_FILTERS = Filterable(
    (*_RUN_QUALIFIERS, Qualifier("thread", "the thread it acts in, by its thr_ id", id_of=ThreadId)),
    words=_RUN_WORDS,
)


class RunFilter(PageRequest):
    """Newest first. A page may hold fewer than its limit and still have a next one."""

    status: tuple[RunStatus, ...] = Field((), description="Only these states; repeat for several.")
    target_agent_id: AgentId | None = Field(None, description="Only runs of this agent.")


class RunQuery(RunFilter):
    filters: ClassVar[Filterable] = RUN_FILTERS

    thread_id: ThreadId | None = Field(None, description="Only runs of this thread.")
    filter: Annotated[str, RUN_FILTERS.checked] | None = Field(
        None,
        max_length=FILTER_LENGTH,
        description=RUN_FILTERS.help,
        examples=["status:failed age:<2h"],
    )


class ThreadRunQuery(RunFilter):
    filters: ClassVar[Filterable] = THREAD_RUN_FILTERS

    thread_id: ThreadId
    filter: Annotated[str, THREAD_RUN_FILTERS.checked] | None = Field(
        None, max_length=FILTER_LENGTH, description=THREAD_RUN_FILTERS.help, examples=["status:failed agent:atlas"]
    )


class NewRun(Request):
    thread_id: ThreadId
    target_agent_id: AgentId = Field(description="The agent that is asked to act.")
    input_message_id: MessageId | None = Field(None, description="The message of the thread that says what to do.")
    max_run_seconds: int | None = Field(
        None, ge=1, le=RUN_SECONDS_MOST, description=f"Seconds until its deadline; {RUN_SECONDS} if left out."
    )
    idempotency_key: IdempotencyKey | None = Field(None, description="The same key again gives the same run.")


class RunCancelling(Request):
    """A run that waits ends at once; one that an agent works on, when the agent has stopped."""

    run_id: RunId
    reason: Reason | None = Field(None, description="Why; it stands in the story of its job.")


class TraceAsked(Request):
    """One of the two: any run of the tree, or the id that all its runs share."""

    run_id: RunId | None = Field(None, description="A run of the tree.")
    trace_id: UUID | None = Field(None, description="The id that all runs of the tree share.")


class TraceKind(StrEnum):
    RUN = "run"
    APPROVAL = "approval"


class TraceRow(Record):
    """A run of the tree, or an approval that something below the run still waits for."""

    columns: ClassVar[tuple[str, ...]] = ("depth", "kind", "agent", "status", "seconds", "run_id", "approval_id")

    kind: TraceKind
    depth: int = Field(description="How many agents passed the request on before.")
    run_id: RunId | None
    approval_id: ApprovalId | None
    parent_run_id: RunId | None
    thread_id: ThreadId
    agent_id: AgentId
    agent: str | None
    status: str
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    seconds: float | None = Field(description="How long it has run, or has waited for a person.")


class Trace(Record):
    trace_id: UUID
    items: tuple[TraceRow, ...] = Field(description="In the order of the tree: each below what asked for it.")
    truncated: bool = Field(description=f"True when there are more than {TRACE_ROWS}.")


def in_tree_order(rows: Iterable[TraceRow]) -> Iterator[TraceRow]:
    """Each row right below the run that asked for it. One whose parent is not among the rows stands on its own."""
    rows = tuple(rows)
    known = {row.run_id for row in rows if row.run_id is not None}
    below: dict[RunId | None, list[TraceRow]] = defaultdict(list)
    for row in rows:
        below[row.parent_run_id if row.parent_run_id in known else None].append(row)
    waiting = below[None][::-1]
    while waiting:
        row = waiting.pop()
        yield row
        if row.run_id is not None:
            waiting += below[row.run_id][::-1]

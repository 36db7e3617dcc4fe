"""Jobs as they are shown, listed and asked for."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field, JsonValue, field_validator

from agent_console.domain.capabilities import normal_capabilities
from agent_console.domain.filters import FILTER_LENGTH, Filterable, Known, Qualifier
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, JobId, RunId, UserId
from agent_console.domain.kinds import ParentKind
from agent_console.domain.list_order import ListOrder
from agent_console.domain.pausing import Pause
from agent_console.domain.records import (
    Instant,
    JsonObject,
    NoKeys,
    NotBlank,
    PageRequest,
    Record,
    Request,
)
from agent_console.domain.states import JobStatus

MAX_RUN_SECONDS = 14_400

Priority = Annotated[int, Field(ge=-1000, le=1000, description="Higher is claimed first.")]


class Job(Record):
    id: JobId
    type: str
    status: JobStatus
    priority: int
    payload: dict[str, JsonValue]
    tool: str | None
    repository: str | None
    collection_id: CollectionId | None
    connector_id: ConnectorId | None
    bound_agent_id: AgentId | None
    required_capabilities: tuple[str, ...]
    affinity_key: str | None
    agent_id: AgentId | None
    agent_name: str | None
    claimed_by: str | None
    attempt: int
    max_attempts: int
    max_run_seconds: int = MAX_RUN_SECONDS
    progress: dict[str, JsonValue] | None
    scheduled_for: Instant | None
    next_attempt_at: Instant | None
    assigned_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    lease_expires_at: Instant | None
    cancel_requested_at: Instant | None
    cancel_requested_by_user_id: UserId | None = None
    cancel_reason: str | None = None
    result_summary: str | None
    error_code: str | None = None
    error_message: str | None
    artifacts_path: str | None
    parent_job_id: JobId | None
    parent_kind: ParentKind | None
    run_id: RunId | None
    signed: bool
    created_by_user_id: UserId | None
    created_by: str | None
    requested_by_user_id: UserId | None
    updated_by_user_id: UserId | None = Field(description="Who changed it last; null while nobody has.")
    created_at: Instant
    updated_at: Instant
    warnings: tuple[str, ...] = Field((), description="Told once, when it is made: why nobody could take it now.")

    @property
    def due_at(self) -> datetime | None:
        """When it may be claimed, while it still has to wait for that."""
        return self.scheduled_for if self.status is JobStatus.SCHEDULED else self.next_attempt_at

    @property
    def shown_status(self) -> str:
        """A running job that was asked to stop is shown as cancelling until its agent says so."""
        if self.cancel_requested_at and self.finished_at is None:
            return "cancelling"
        return self.status.value


JOB_FILTERS = Filterable(
    (
        Qualifier("status", "its state", listed=tuple(JobStatus)),
        Qualifier("type", "what kind of work", known=Known.JOB_TYPES),
        Qualifier("agent", "who has or had it, by name or id", known=Known.AGENTS),
        Qualifier("tool", "the tool it runs"),
        Qualifier("affinity", "its affinity key"),
        Qualifier("age", "since it was made, such as >1h or <2d", is_age=True),
    ),
    words="its type and its tool",
)


class JobFilter(Request):
    """Which jobs are meant; nothing said means all of them."""

    filters: ClassVar[Filterable] = JOB_FILTERS

    status: tuple[JobStatus, ...] = Field((), description="Only these states; repeat for several.")
    type: str | None = Field(None, max_length=100, description="Only this type.")
    agent_id: AgentId | None = Field(None, description="Only jobs this agent has or had.")
    collection_id: CollectionId | None = Field(None, description="Only jobs of this collection.")
    tool: str | None = Field(None, max_length=100, description="Only jobs for this tool.")
    filter: Annotated[str, JOB_FILTERS.checked] | None = Field(
        None, max_length=FILTER_LENGTH, description=JOB_FILTERS.help, examples=["status:dead_letter age:>1h"]
    )


class JobQuery(JobFilter, PageRequest):
    """The jobs of the team, newest first. With a filter a page may hold few, even none, and still go on."""

    order: ListOrder = Field(ListOrder.NEWEST, description="From which end the list is read.")


class JobAsked(Request):
    job_id: JobId


class NewJob(Request):
    """A job to be done. Without `bound_agent_id` any agent with the required capabilities may take it."""

    type: Annotated[str, NotBlank] = Field(
        min_length=1, max_length=100, description="What kind of work, such as report."
    )
    payload: Annotated[JsonObject, NoKeys] = Field(description="What the agent gets, a JSON object.")
    priority: Priority = 0
    required_capabilities: tuple[str, ...] = Field(
        (), max_length=50, description="What an agent must be able to do; repeat for several."
    )
    bound_agent_id: AgentId | None = Field(None, description="Only this agent may take it.")
    collection_id: CollectionId | None = Field(None, description="The collection it works on.")
    connector_id: ConnectorId | None = Field(None, description="The connector it needs.")
    tool: Annotated[str, NotBlank] | None = Field(
        None, min_length=1, max_length=100, description="The tool it runs."
    )
    repository: str | None = Field(None, min_length=1, max_length=500, description="The repository it touches.")
    affinity_key: str | None = Field(
        None, max_length=255, description="A word for jobs that belong together: filtered by, and no condition."
    )
    max_attempts: int = Field(3, ge=1, le=100, description="Tries before it is a dead letter.")
    max_run_seconds: int = Field(
        MAX_RUN_SECONDS, ge=1, le=604_800, description="How long one try may take before it is ended."
    )
    signed: bool = Field(False, description="Its result is taken only with a valid signature.")
    scheduled_for: AwareDatetime | None = Field(None, description="Not before this time (ISO 8601).")
    idempotency_key: str | None = Field(
        None, min_length=1, max_length=255, description="The same key again gives the same job."
    )
    requested_by_user_id: UserId | None = Field(None, description="The person behind the request.")

    @field_validator("required_capabilities")
    @classmethod
    def _normal(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return normal_capabilities(value)


class StatusDepth(Record):
    status: JobStatus
    count: int = Field(description="How many, at most the cap.")
    capped: bool = Field(description="True when there are more than the count says.")


class QueueDepth(Record):
    depths: tuple[StatusDepth, ...]
    oldest_queued_at: Instant | None
    at: Instant
    pause: Pause | None = Field(None, description="Null unless the queue is paused.")

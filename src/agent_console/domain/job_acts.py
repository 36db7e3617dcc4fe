"""What an operator does to jobs: stop them, try them again, move them in the queue; one by one or in bulk."""

from pydantic import Field, field_validator

from agent_console.domain.agent_changes import Reason
from agent_console.domain.batches import Batch, BatchRequest
from agent_console.domain.ids import AgentId, JobId
from agent_console.domain.jobs import Job, JobFilter, Priority
from agent_console.domain.records import Instant, Record, Request
from agent_console.domain.states import JOB_HELD, JobStatus

IDS_MOST = 500
EXAMPLES = 10

WAITING = frozenset({JobStatus.SCHEDULED, JobStatus.QUEUED})
CANCELLABLE = WAITING | JOB_HELD
RETRYABLE = frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED})


def can_be_cancelled(job: Job) -> bool:
    return job.status in CANCELLABLE and job.cancel_requested_at is None


def can_be_retried(job: Job) -> bool:
    """A run is asked for again in its thread, where the policy is asked too."""
    return job.status in RETRYABLE and job.run_id is None


def can_be_moved(job: Job) -> bool:
    return job.status in WAITING


_WHY_CANCEL = "Why; it stands in the story of the job."


class JobCancelling(Request):
    """A waiting job ends at once; a held one when its agent has stopped, or when its lease ends."""

    job_id: JobId
    reason: Reason | None = Field(None, description=_WHY_CANCEL)


class JobRetrying(Request):
    """A new job in place of one that ended badly; that one keeps its history."""

    job_id: JobId


class JobReprioritising(Request):
    job_id: JobId
    priority: Priority


class JobRebinding(Request):
    """One of the two has to be said: leaving out the agent by mistake must not let everybody have the job."""

    job_id: JobId
    agent_id: AgentId | None = Field(None, description="Only this agent may take it.")
    unbind: bool = Field(False, description="Any agent with the required capabilities may take it.")


class JobSelection(JobFilter, BatchRequest):
    """Which jobs: `ids`, or all that match a filter. Saying neither is refused, it never means all."""

    ids: tuple[JobId, ...] = Field((), max_length=IDS_MOST, description="These jobs; repeat for several.")

    @field_validator("filter")
    @classmethod
    def _asks_for_something(cls, value: str | None) -> str | None:
        """Left blank, by a variable that is not set, it shows a list whole; an act would change every job."""
        if value is not None and not cls.filters.read(value).terms:
            raise ValueError("must not be blank, which would match every job")
        return value


class JobsCancelling(JobSelection):
    reason: Reason | None = Field(None, description=_WHY_CANCEL)


class JobsRetrying(JobSelection):
    """Dead letters go back to work with status=dead_letter."""


class JobsReprioritising(JobSelection):
    priority: Priority


class JobExample(Record):
    id: JobId
    type: str
    status: JobStatus
    created_at: Instant


class JobBatch(Batch):
    examples: tuple[JobExample, ...] = Field((), description="Of a dry run: the first that would be changed.")

"""What an agent does with jobs: takes them, reports on them, ends them.

Every report carries the attempt the agent was given: when that attempt is over, whoever still works on it is
refused and changes nothing.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, computed_field, field_validator

from agent_console.domain.ids import CollectionId, ConnectorId, JobId, RunId
from agent_console.domain.kinds import EventLevel
from agent_console.domain.records import (
    LARGEST_COUNT,
    LARGEST_NUMBER,
    Instant,
    JsonObject,
    NotBlank,
    Record,
    Request,
)
from agent_console.domain.redact import redact, redact_object
from agent_console.domain.states import JobStatus

LEASE_SECONDS = 120
LEASE_LEAST, LEASE_MOST = 10, 86_400
JOBS_PER_CLAIM = 50
WAIT_SECONDS = 30.0
EVENTS_PER_CALL = 500
TEXT_LENGTH = 10_000
CODE_LENGTH = 100


Redacted = AfterValidator(redact)
Word = Annotated[str, NotBlank]
Words = Annotated[str, Redacted]
Told = Annotated[str, NotBlank, Redacted, Field(min_length=1, max_length=TEXT_LENGTH)]


class ClaimWanted(Request):
    """How much work an agent asks for, and how it wants it."""

    count: int = Field(1, ge=1, le=JOBS_PER_CLAIM, description="How many jobs at most.")
    lease_seconds: int = Field(
        LEASE_SECONDS,
        ge=LEASE_LEAST,
        le=LEASE_MOST,
        description="How long each is yours before you have to renew it; the team may set a lower limit.",
    )
    allowed_types: tuple[Word, ...] | None = Field(
        None, max_length=100, description="Only jobs of these types; left out, of any."
    )
    auto_start: bool = Field(False, description="Start them at once: they are running, not assigned.")


class Claim(ClaimWanted):
    worker_id: Word | None = Field(
        None, min_length=1, max_length=255, description="Your worker id, if you want it checked."
    )
    wait_seconds: float = Field(
        0.0, ge=0.0, le=WAIT_SECONDS, description="Wait this long for a job; a new one ends the wait at once."
    )


class WhyNothing(StrEnum):
    """Why a claim came back without a job."""

    NOTHING_QUEUED = "nothing_queued"
    NOTHING_FOR_YOU = "nothing_for_you"
    AT_YOUR_LIMIT = "at_your_limit"
    DRAINED = "drained"
    PAUSED = "paused"


WHY_NOTHING: dict[WhyNothing, str] = {
    WhyNothing.NOTHING_QUEUED: "Nothing is waiting in the queue.",
    WhyNothing.NOTHING_FOR_YOU: "Jobs are waiting, but none that you may and can take.",
    WhyNothing.AT_YOUR_LIMIT: "You hold as many jobs as you may.",
    WhyNothing.DRAINED: "You are drained: finish what you hold.",
    WhyNothing.PAUSED: "The queue is paused.",
}


class PauseSeen(Record):
    mode: str
    reason: str
    since: Instant


class Assignment(Record):
    """A job as its agent gets it. `attempt` comes with every report."""

    id: JobId
    type: str
    status: JobStatus = Field(description="running with auto_start, else assigned until you say that you begin.")
    priority: int
    payload: dict[str, JsonValue] = Field(description="What to do, as whoever made the job wrote it.")
    tool: str | None
    repository: str | None
    collection_id: CollectionId | None
    connector_id: ConnectorId | None
    run_id: RunId | None = Field(description="The run that this job is, if somebody asked for it in a thread.")
    required_capabilities: tuple[str, ...]
    attempt: int = Field(description="1 for the first try. Reports that name another one are refused.")
    max_attempts: int = Field(description="After so many tries it becomes a dead letter.")
    max_run_seconds: int = Field(description="Whatever renews its lease: it is ended when it runs for longer.")
    assigned_at: Instant
    lease_expires_at: Instant = Field(description="Renew the lease before, or the job is another's.")
    signing_secret: str | None = Field(
        None, description="Sign the result with it; given only to who holds the job."
    )


class Claimed(Record):
    """What a claim brought; without a job it says why."""

    jobs: tuple[Assignment, ...] = Field((), description="Yours from now on; at most as many as were asked for.")
    reason: WhyNothing | None = Field(None, description="Why there is none, for programs.")
    message: str | None = Field(None, description="Why there is none, in a sentence.")
    pause: PauseSeen | None = Field(None, description="How and since when, with reason paused.")

    @computed_field(description="The first of the jobs, for those who ask for one at a time.")  # type: ignore[prop-decorator]
    @property
    def job(self) -> Assignment | None:
        return self.jobs[0] if self.jobs else None


class JobHeld(Record):
    """A job as it stands with its agent, without what there is to do."""

    id: JobId
    type: str
    status: JobStatus
    attempt: int
    assigned_at: Instant
    lease_expires_at: Instant


class JobsHeld(Record):
    jobs: tuple[JobHeld, ...] = Field(description="Yours just now, the oldest first.")


class HeldJob(Request):
    job_id: JobId
    attempt: int = Field(ge=1, le=LARGEST_COUNT, description="The attempt you were given with the job.")


class JobStart(HeldJob):
    """From assigned to running."""


class JobRenewal(HeldJob):
    lease_seconds: int | None = Field(
        None, ge=LEASE_LEAST, le=LEASE_MOST, description="A new length; without it the one you claimed with."
    )


class Lease(Record):
    job_id: JobId
    lease_expires_at: Instant
    cancel_requested: bool = Field(description="Stop working on it, then acknowledge.")


class JobProgress(HeldJob):
    """Where the work is; replaces what was said before."""

    stage: Words | None = Field(None, max_length=200, description="What it is at, in a word.")
    percentage: int | None = Field(None, ge=0, le=100, description="How much of it is done.")
    files_scanned: int | None = Field(
        None, ge=0, le=LARGEST_NUMBER, description="How many files it has looked at."
    )
    total_files: int | None = Field(None, ge=0, le=LARGEST_NUMBER, description="How many files there are.")
    current_file: Words | None = Field(None, max_length=2000, description="The file it is at.")
    message: Words | None = Field(None, max_length=2000, description="What it does, in a sentence.")

    @property
    def shown(self) -> dict[str, JsonValue]:
        return self.model_dump(exclude={"job_id", "attempt"}, exclude_none=True)


class EventLine(Request):
    level: EventLevel = Field(EventLevel.INFO, description="info, warn or error.")
    message: Told = Field(description="What happened.")
    payload: JsonObject | None = Field(None, description="A JSON object with the details.")

    @field_validator("payload")
    @classmethod
    def _without_secrets(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        return None if value is None else redact_object(value)


class JobLines(HeldJob):
    events: tuple[EventLine, ...] = Field(
        min_length=1, max_length=EVENTS_PER_CALL, description="What happened, oldest first."
    )


class Reported(Record):
    job_id: JobId
    status: JobStatus
    cancel_requested: bool = Field(description="Stop working on it, then acknowledge.")


class Ending(HeldJob):
    """The end of an attempt, and what the agent wants next in the same breath."""

    claim_next: ClaimWanted | None = Field(None, description="Claim again in the same step.")


class JobDone(Ending):
    result_summary: Words | None = Field(
        None, max_length=TEXT_LENGTH, description="What came of it, in a sentence."
    )
    result: JsonObject | None = Field(None, description="What came of it, a JSON object.")
    signature: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="HMAC-SHA256 of the result's canonical JSON with the signing secret, in hex.",
    )
    artifacts_path: Annotated[Word, Redacted] | None = Field(
        None, max_length=1000, description="Where it left what it made."
    )


class JobFailed(Ending):
    error: Told = Field(description="What went wrong, for the operator.")
    error_code: Word | None = Field(None, min_length=1, max_length=CODE_LENGTH, description="For programs.")
    retryable: bool = Field(True, description="Whether trying again makes sense.")


class CancelAcknowledged(Ending):
    message: Words | None = Field(None, max_length=TEXT_LENGTH, description="A last word of the agent.")


class Ended(Record):
    job_id: JobId
    status: JobStatus = Field(description="What became of the job; queued when it will be tried again.")
    next: Claimed | None = Field(None, description="What `claim_next` brought.")

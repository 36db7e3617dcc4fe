"""The audit trail as it is read: newest first, filtered, or followed in the order in which it was sealed."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, JsonValue, model_validator

from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.domain.records import LARGEST_NUMBER, Instant, Page, Record, Request

LIMIT = 100
LIMIT_MAX = 500
SHOWN_DAYS = 7
WAIT_SECONDS = 25.0
UNSEALED_MOST = 10_000
"""Counting what waits for its seal stops here."""

Word = Annotated[str, Field(min_length=1, max_length=300)]
# A name, or with a dot at its end the beginning of several.
ActionName = Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*\.?$")]
HashText = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64])]


class AuditRow(Record):
    """One act. Where a person acted from is told to administrators and to that person alone."""

    columns: ClassVar[tuple[str, ...]] = ("seq", "created_at", "actor", "action", "resource_id", "decision")

    id: AuditId
    seq: int = Field(description="Numbers grow, but who commits late is seen late: follow positions instead.")
    created_at: Instant
    actor_type: ActorType
    actor_user_id: UserId | None
    actor_agent_id: AgentId | None
    actor: str = Field(description="The actor's name when it acted.")
    action: str
    resource_type: str
    resource_id: str
    thread_id: ThreadId | None
    run_id: RunId | None
    decision: Decision | None
    reason: str | None
    ip: str | None
    user_agent: str | None
    metadata: dict[str, JsonValue]
    event_hash: HashText
    position: int | None = Field(description="Its place in the sealed chain; null until it is sealed.")
    seal: HashText | None = Field(description="The chain's hash at its place.")


class AuditFilter(Request):
    actor_user_id: UserId | None = Field(None, description="Only what this person did.")
    actor_agent_id: AgentId | None = Field(None, description="Only what this agent did.")
    action: ActionName | None = Field(None, description="Only this action; `job.` is all that begin so.")
    resource_type: Word | None = Field(None, description="Only on things of this type, such as job.")
    resource_id: Word | None = Field(None, description="Only on this thing.")
    thread_id: ThreadId | None = Field(None, description="Only in this thread.")
    run_id: RunId | None = Field(None, description="Only of this run.")
    decision: Decision | None = Field(None, description="Only what was decided so.")
    since: Instant | None = Field(None, description="Only from this time on (ISO 8601).")
    until: Instant | None = Field(None, description="Only before this time (ISO 8601).")

    @model_validator(mode="after")
    def _in_order(self) -> "AuditFilter":
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError("`since` must not lie after `until`")
        return self


class AuditQuery(AuditFilter):
    """Newest first. Without a time it is the last seven days."""

    limit: int = Field(LIMIT, ge=1, le=LIMIT_MAX, description="How many rows at most.")
    after: str | None = Field(None, max_length=500, description="Where the page before ended.")


class AuditAsked(Request):
    audit_id: AuditId


class AuditTail(AuditFilter):
    """Sealed acts in their order; without a position the last ones, or those since a time."""

    limit: int = Field(LIMIT, ge=1, le=LIMIT_MAX, description="How many rows at most.")
    after_position: int | None = Field(
        None, ge=0, le=LARGEST_NUMBER, description="Only what was sealed after this position."
    )
    wait_seconds: float = Field(
        0.0, ge=0.0, le=WAIT_SECONDS, description="Wait this long for something new; it ends the wait at once."
    )


class AuditTailPage(Page[AuditRow]):
    """A part of the tail. Ask again after `position`, whether or not there are rows in it."""

    position: int = Field(description="Everything up to here was looked at.")
    head: int = Field(description="The last position that is sealed.")


class Seal(Record):
    """The end of a team's chain. Kept outside the database it proves that nothing before it was changed."""

    team_id: TeamId
    team: str
    position: int = Field(description="How many acts were ever sealed.")
    hash: HashText
    sealed_at: Instant | None = Field(description="Null while nothing is sealed.")


class KeptSeal(Request):
    """A seal that was exported before. What else the file says is not needed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    team_id: TeamId
    position: int = Field(ge=0, le=LARGEST_NUMBER)
    hash: HashText


class Checkpoint(Record):
    """What is left of a month that was dropped."""

    month: str
    first_position: int
    last_position: int
    last_hash: HashText
    rows: int
    created_at: Instant


class SealStatus(Seal):
    """How the sealing goes."""

    unsealed: int = Field(description=f"Acts that wait for their seal; counting stops at {UNSEALED_MOST:,}.")
    lag_seconds: float = Field(description="How long the oldest of them has waited.")
    at: Instant
    months: tuple[str, ...] = Field(description="The months there is room for.")
    kept_since: Instant = Field(description="Months that end before this may be dropped.")
    checkpoints: tuple[Checkpoint, ...]

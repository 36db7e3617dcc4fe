"""Why a job is not running: what it waits for, who could take it, and how they stand."""

from enum import StrEnum

from pydantic import Field

from agent_console.domain.ids import AgentId, JobId, LaneId
from agent_console.domain.records import Instant, Record
from agent_console.domain.states import JobStatus

AHEAD_CAP = 1_000
AGENTS_COUNTED = 200
AGENTS_NAMED = 10


class Standing(StrEnum):
    """How an agent stands that could take a job, were it not for this. The first that holds is told."""

    FREE = "free"
    BUSY = "busy"
    DRAINED = "drained"
    IN_ERROR = "in_error"
    OFFLINE = "offline"
    NOT_ALLOWED = "not_allowed"
    REVOKED = "revoked"


LIVING = frozenset({Standing.FREE, Standing.BUSY})


class AbleAgent(Record):
    id: AgentId
    name: str
    since: Instant | None = Field(None, description="Since when it stands so, where that is known.")
    note: str = Field("", description="With what it is busy, why it is drained, what it may not.")


class AgentGroup(Record):
    """Agents that could take the job and stand alike."""

    standing: Standing
    count: int
    capped: bool = Field(description="True when there are more than the count says.")
    agents: tuple[AbleAgent, ...] = Field(description="A few of them by name.")


class Obstacle(StrEnum):
    TIME = "time"
    RETRY = "retry"
    TENDING = "tending"
    PAUSE = "pause"
    CONNECTOR = "connector"
    NOBODY = "nobody"
    BUSY = "busy"
    TURN = "turn"


class WaitsFor(Record):
    what: Obstacle
    words: str
    until: Instant | None = Field(None, description="When that ends by itself, where that is known.")


class Holding(Record):
    """Who has the job now."""

    agent_id: AgentId
    agent_name: str
    claimed_by: str
    since: Instant
    started_at: Instant | None
    lease_until: Instant
    cancel_requested_at: Instant | None


class Outcome(Record):
    """How the job ended."""

    at: Instant
    agent_name: str | None
    reason: str | None


class Explanation(Record):
    id: JobId
    summary: str = Field(description="The one sentence to read first.")
    status: JobStatus
    lane_id: LaneId
    lane: str = Field(description="What decides who may take it, in words.")
    waits_for: tuple[WaitsFor, ...] = Field(description="Everything in its way, the first to be seen to first.")
    ahead: int | None = Field(description="How many of its lane are claimed before it; null when it can't be yet.")
    ahead_capped: bool = Field(description="True when there are more than that.")
    agents: tuple[AgentGroup, ...] = Field(description="Who could take it, by how they stand.")
    agents_capped: bool = Field(description="True when not every agent was looked at.")
    held: Holding | None
    ended: Outcome | None
    warnings: tuple[str, ...] = Field(description="What slows the whole queue down just now.")
    at: Instant

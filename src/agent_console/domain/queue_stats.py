"""How the queue goes, from counters that are kept and never counted anew."""

from pydantic import Field

from agent_console.domain.ids import LaneId
from agent_console.domain.records import Instant, Record
from agent_console.domain.states import JobStatus

LANES_SHOWN = 50
TYPES_SHOWN = 50


class StatusCount(Record):
    status: JobStatus
    jobs: int


class TypeCount(Record):
    type: str
    waiting: int = Field(description="Queued or scheduled.")
    held: int = Field(description="Assigned or running.")
    ended: int = Field(description="Ended and not yet removed.")


class LaneCount(Record):
    id: LaneId
    lane: str = Field(description="What decides who may take its jobs, in words.")
    waiting: int
    held: int


class QueueTotals(Record):
    """Since the database was made; two of them and the time between make a rate."""

    created: int
    claims: int
    completions: int
    failures: int
    retries: int = Field(description="Given back to the queue for another try.")
    dead_letters: int
    cancellations: int
    lease_losses: int
    claim_wait_seconds: float = Field(description="How long all claimed jobs together were ready before.")


class QueueStats(Record):
    by_status: tuple[StatusCount, ...]
    by_type: tuple[TypeCount, ...] = Field(description="The types with most waiting first.")
    types_capped: bool
    by_lane: tuple[LaneCount, ...] = Field(description="The lanes with most waiting first.")
    lanes_capped: bool
    oldest_queued_at: Instant | None
    oldest_queued_seconds: float | None
    totals: QueueTotals
    average_claim_wait_seconds: float | None
    oldest_transaction_seconds: float | None = Field(description="Of those that this login may see.")
    hidden_transactions: int = Field(description="Snapshots held by others, whose age this login may not see.")
    oldest_snapshot_transactions: int = Field(description="How many transactions ago the oldest was taken.")
    warnings: tuple[str, ...]
    at: Instant

    def per_minute_since(self, earlier: "QueueStats") -> dict[str, float]:
        """How much of each total came in a minute between two looks; empty when no time lies between them."""
        minutes = (self.at - earlier.at).total_seconds() / 60
        if minutes <= 0:
            return {}
        now, before = (stats.totals.model_dump(exclude={"claim_wait_seconds"}) for stats in (self, earlier))
        return {name: (now[name] - before[name]) / minutes for name in now}

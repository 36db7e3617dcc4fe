"""How often an agent speaks, and how long it waits."""

from dataclasses import dataclass
from typing import Self

from agent_console.domain.errors import Invalid
from agent_console.domain.presence import HEARTBEAT_SECONDS, HEARTBEAT_SECONDS_BUSY

POLL_LEAST, POLL_MOST = 5.0, 10.0


@dataclass(frozen=True)
class Pace:
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    busy_heartbeat_seconds: float = HEARTBEAT_SECONDS_BUSY
    renewals_per_lease: float = 3.0
    # A server goes on with a claim whose agent has gone. So an agent that leaves waits for its last one, and gives
    # back what it still brought: what is waited for must be short.
    claim_seconds: float = 5.0
    refused_seconds: float = 5.0
    """Until it asks again after a claim that was answered at once and brought nothing."""
    outcome_seconds: float = 25.0
    batch_seconds: float = 0.3
    retry_seconds: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
    """Between tries while the server is away; the last one goes on, and is short enough to be back within 30 s."""
    unsure_seconds: float = 45.0
    """After a lost answer: a server goes on with a claim for up to a quarter of a minute, and then it is seen."""
    silent_seconds: float = 15.0
    """So long a job must be unknown and its lease not renewed; a busy agent beats more often than that."""
    last_seconds: float = 2.0
    """What is left after the grace of an agent that leaves: to stop, and to say the last words."""

    @classmethod
    def polling(cls, seconds: float) -> Self:
        """Asks for work so often, when there is none."""
        if not POLL_LEAST <= seconds <= POLL_MOST:
            raise Invalid(f"An agent polls every {POLL_LEAST:g} to {POLL_MOST:g} seconds, not every {seconds:g}.")
        return cls(claim_seconds=seconds, refused_seconds=seconds)

    def beat_seconds(self, lease_seconds: int, *, busy: bool) -> float:
        if not busy:
            return self.heartbeat_seconds
        return min(self.busy_heartbeat_seconds, self.renewal_seconds(lease_seconds))

    def renewal_seconds(self, lease_seconds: int) -> float:
        return lease_seconds / self.renewals_per_lease

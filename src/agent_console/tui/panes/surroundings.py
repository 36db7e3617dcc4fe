"""What every pane and screen is given."""

from dataclasses import dataclass
from time import monotonic

from agent_console.domain.permissions import Role
from agent_console.tui.far_clock import FarClock
from agent_console.tui.link import Clock, Link, LinkState


@dataclass(frozen=True)
class Surroundings:
    link: Link
    clock: Clock
    read_only: bool = False

    def passed(self) -> float:
        """Seconds on a clock that never jumps, as the one that follows the database may when it hears of it."""
        return monotonic() if isinstance(self.clock, FarClock) else self.clock().timestamp()

    @property
    def up(self) -> bool:
        """Whether anything can be asked now."""
        return self.link.status.state is LinkState.UP

    @property
    def acting_as(self) -> Role | None:
        """In which role something can be changed from here, now; None when nothing can."""
        if self.read_only or not self.up or self.link.me is None:
            return None
        return self.link.me.role

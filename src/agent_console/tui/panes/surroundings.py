"""What every pane and screen is given."""

from dataclasses import dataclass

from agent_console.domain.permissions import Role
from agent_console.tui.link import Clock, Link, LinkState


@dataclass(frozen=True)
class Surroundings:
    link: Link
    clock: Clock
    read_only: bool = False

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

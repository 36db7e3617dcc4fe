"""What the console is started with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent_console.tui.link import Opening


def system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Setup:
    """Where to go, as what it is shown, and how the console looks and listens to keys."""

    opening: Opening
    profile: str
    production: bool = False
    colour: str | None = None
    read_only: bool = False
    theme: str = "dark"
    start: str = "overview"
    keymap: Mapping[str, str] = field(default_factory=dict)

"""What the console is started with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_console.tui.link import Opening

if TYPE_CHECKING:
    from agent_console.domain.doctor_facts import LocalFacts
    from agent_console.tui.places import Places


def system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Setup:
    """Where to go, as what it is shown, and how the console looks and listens to keys.

    `places` are the other places one can go to from there; `examine` tells a doctor about this machine, and may
    be slow.
    """

    opening: Opening
    profile: str
    production: bool = False
    colour: str | None = None
    read_only: bool = False
    theme: str = "dark"
    start: str = "overview"
    keymap: Mapping[str, str] = field(default_factory=dict)
    places: "Places | None" = None
    examine: "Callable[[], LocalFacts] | None" = None

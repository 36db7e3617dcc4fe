"""Where else the console can go: the profiles of the configuration file, as far as the console knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_console.tui.link import Opening

if TYPE_CHECKING:
    from agent_console.tui.setup import Setup

OWN_TOKEN = "A token belongs to one team: another team needs a profile with a token of that team."


@dataclass(frozen=True)
class KnownPlace:
    """One profile. `look` opens it just to see whether it answers; without one that is not tried.

    `problem` says why nobody can go there, `one_team` that whoever goes there has no choice of team.
    """

    name: str
    kind: str
    leads_to: str = ""
    production: bool = False
    read_only: bool = False
    problem: str = ""
    one_team: bool = False
    look: Opening | None = None


@dataclass(frozen=True)
class PlaceChosen:
    """Without a team it is the one the profile names."""

    name: str
    team: str | None = None


class Places(Protocol):
    """Both may read files, and are called off the event loop."""

    def listed(self) -> Sequence[KnownPlace]:
        """In the order of the file, also those that can't be used."""
        ...

    def setup_of(self, chosen: PlaceChosen) -> "Setup":
        """How to go there. Raises ConfigError when the configuration does not allow it."""
        ...

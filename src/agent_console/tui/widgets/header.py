"""The line above every pane: where you are, how the pool is, and whether what you see is true."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from agent_console.domain.spans import span
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import NOT_YET, LinkState, LinkStatus
from agent_console.tui.looks import pool_badge

if TYPE_CHECKING:
    from agent_console.domain.agents import PoolStatus
    from agent_console.domain.identity import Myself

FRESH_SECONDS = 10
PROFILE_CHARACTERS = 30
TEAM_CHARACTERS = 30
PERSON_CHARACTERS = 50


@dataclass(frozen=True)
class HeaderFacts:
    profile: str
    production: bool
    read_only: bool
    colour: str | None = None
    me: "Myself | None" = None
    pool: "PoolStatus | None" = None
    link: LinkStatus = NOT_YET
    answered_at: datetime | None = None
    now: datetime | None = None

    @property
    def age(self) -> float | None:
        if self.answered_at is None or self.now is None:
            return None
        return (self.now - self.answered_at).total_seconds()


@dataclass(frozen=True)
class Wording:
    """How much the line says; what an operator misses least is left out first."""

    person: bool = True
    age: bool = True
    team: bool = True
    retries: bool = True


WORDINGS = (
    Wording(),
    Wording(person=False),
    Wording(person=False, age=False),
    Wording(person=False, age=False, team=False),
    Wording(person=False, age=False, team=False, retries=False),
)


def profile_text(facts: HeaderFacts) -> Content:
    style = "auto on $error bold" if facts.production else "bold"
    if facts.colour is not None:
        style = f"auto on {facts.colour} bold"
    return agent_text(facts.profile, limit=PROFILE_CHARACTERS).pad(1, 1).stylize(style)


def place_text(facts: HeaderFacts, wording: Wording) -> Content:
    """Where one is: profile, team and person."""
    shown = profile_text(facts)
    if facts.me is not None and wording.team:
        shown += agent_text(f" {facts.me.team}", limit=TEAM_CHARACTERS)
    if facts.me is not None and wording.person:
        shown += agent_text(
            f" · {facts.me.name} ({facts.me.role.value})", "$foreground-muted", limit=PERSON_CHARACTERS
        )
    if facts.read_only:
        shown += system_text(" read-only", "$text-warning")
    return shown


def link_text(facts: HeaderFacts, wording: Wording) -> Content:
    """Whether what is shown is true, in a glyph and a word."""
    age = f", data {span(facts.age)} old" if wording.age and facts.age is not None else ""
    match facts.link.state:
        case LinkState.STARTING:
            return system_text("◌ connecting", "$text-warning")
        case LinkState.LOST:
            retries = f", retry {facts.link.retries}" if wording.retries else ""
            return system_text(f"✗ lost{retries}{age}", "$text-error bold")
        case LinkState.UP:
            if facts.age is not None and facts.age >= FRESH_SECONDS:
                return system_text(f"✓ connected{age}", "$text-warning")
            return system_text("✓ connected", "$text-success")


def header_line(facts: HeaderFacts, width: int) -> Content:
    """The line in exactly this many cells. The pool and the connection stay on it at any width."""
    badge = pool_badge(facts.pool, stale=facts.link.state is not LinkState.UP)
    for wording in WORDINGS:
        place, link = place_text(facts, wording).pad_right(1), link_text(facts, wording).pad_right(1)
        room = width - badge.cell_length - link.cell_length - 3
        if place.cell_length <= room:
            break
    left = place.truncate(max(0, room), ellipsis=True).pad_right(1) + badge
    return (left.pad_right(max(1, width - left.cell_length - link.cell_length)) + link).truncate(width, pad=True)


class HeaderBar(Widget):
    DEFAULT_CSS = "HeaderBar { height: 1; }"

    facts: reactive[HeaderFacts | None] = reactive(None, repaint=False)

    def __init__(self, facts: HeaderFacts) -> None:
        super().__init__()
        self._painted = system_text("")
        self.set_reactive(HeaderBar.facts, facts)

    def watch_facts(self) -> None:
        """Only a line that reads differently is painted again."""
        if not self._line().is_same(self._painted):
            self.refresh()

    def render(self) -> Content:
        self._painted = self._line()
        return self._painted

    def _line(self) -> Content:
        if self.facts is None:
            return system_text("")
        return header_line(self.facts, self.size.width)

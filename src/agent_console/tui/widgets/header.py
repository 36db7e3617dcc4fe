"""The line above every pane: where you are, how the pool is, and whether what you see is true."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from agent_console.domain.spans import ago, span
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import NOT_YET, LinkState, LinkStatus
from agent_console.tui.looks import pool_badge
from agent_console.tui.waiting_count import WaitingCount

if TYPE_CHECKING:
    from agent_console.domain.agents import PoolStatus
    from agent_console.domain.identity import Myself
    from agent_console.domain.pausing import Pause

FRESH_SECONDS = 10
PROFILE_CHARACTERS = 30
TEAM_CHARACTERS = 30
PERSON_CHARACTERS = 50
REASON_CHARACTERS = 200


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
    waiting: WaitingCount | None = None

    @property
    def age(self) -> float | None:
        if self.answered_at is None or self.now is None:
            return None
        return (self.now - self.answered_at).total_seconds()

    @property
    def pause(self) -> "Pause | None":
        return None if self.pool is None else self.pool.pause


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
    return agent_text(_both_ends(facts.profile), limit=PROFILE_CHARACTERS).pad(1, 1).stylize(style)


def _both_ends(profile: str) -> str:
    """An address is told from others by how it begins, and by the database it ends with."""
    if len(profile) <= PROFILE_CHARACTERS:
        return profile
    end = PROFILE_CHARACTERS // 2
    return f"{profile[: PROFILE_CHARACTERS - end - 1]}…{profile[-end:]}"


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


def waiting_text(facts: HeaderFacts, wording: Wording) -> Content:
    """What waits for a person; where nothing does, nothing is said, so that it is seen when something comes."""
    if facts.waiting is None or not (facts.waiting.count or facts.waiting.more):
        return system_text("")
    words = facts.waiting.words if wording.retries else str(facts.waiting)
    style = "$foreground-muted" if facts.link.state is not LinkState.UP else "$text-warning bold"
    return system_text(f"  ◆ {words}", style)


def header_line(facts: HeaderFacts, width: int) -> Content:
    """The line in exactly this many cells. The pool, what waits and the connection stay on it at any width."""
    pool = pool_badge(facts.pool, stale=facts.link.state is not LinkState.UP)
    for wording in WORDINGS:
        badge = pool + waiting_text(facts, wording)
        place, link = place_text(facts, wording).pad_right(1), link_text(facts, wording).pad_right(1)
        room = width - badge.cell_length - link.cell_length - 3
        if place.cell_length <= room:
            break
    left = place.truncate(max(0, room), ellipsis=True).pad_right(1) + badge
    return (left.pad_right(max(1, width - left.cell_length - link.cell_length)) + link).truncate(width, pad=True)


def pause_line(facts: HeaderFacts, width: int) -> Content | None:
    """That nothing is claimed, since when and why. It has a line of its own, so that nothing crowds it out."""
    pause = facts.pause
    if pause is None:
        return None
    since = "" if facts.now is None else f" for {ago(pause.since, facts.now)}"
    line = system_text(f" ‖ Queue paused ({pause.mode.value}){since}")
    if pause.by:
        line += agent_text(f" by {pause.by}", limit=PERSON_CHARACTERS)
    line += system_text(": ") + agent_text(pause.reason, limit=REASON_CHARACTERS)
    # Reversed rather than coloured behind: it is read on any palette, and without any.
    style = "$foreground-muted" if facts.link.state is not LinkState.UP else "bold reverse $text-warning"
    return line.truncate(width, ellipsis=True, pad=True).stylize(style)


class HeaderBar(Widget):
    DEFAULT_CSS = "HeaderBar { height: 1; } HeaderBar.paused { height: 2; }"

    facts: reactive[HeaderFacts | None] = reactive(None, repaint=False)

    def __init__(self, facts: HeaderFacts) -> None:
        super().__init__(classes="paused" if facts.pause else None)
        self._painted = system_text("")
        self.set_reactive(HeaderBar.facts, facts)

    def watch_facts(self) -> None:
        """Only a line that reads differently is painted again."""
        self.set_class(self.facts is not None and self.facts.pause is not None, "paused")
        if not self._line().is_same(self._painted):
            self.refresh()

    def render(self) -> Content:
        self._painted = self._line()
        return self._painted

    def _line(self) -> Content:
        if self.facts is None:
            return system_text("")
        line, paused = header_line(self.facts, self.size.width), pause_line(self.facts, self.size.width)
        return line if paused is None else system_text("\n").join([line, paused])

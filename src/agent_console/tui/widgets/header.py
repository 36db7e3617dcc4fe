"""The line above every pane: where you are, how the pool is, and whether what you see is true."""

from dataclasses import dataclass
from datetime import datetime

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from agent_console.domain.agents import PoolStatus
from agent_console.domain.identity import Myself
from agent_console.domain.spans import span
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import NOT_YET, LinkState, LinkStatus
from agent_console.tui.looks import pool_badge

FRESH_SECONDS = 10


@dataclass(frozen=True)
class HeaderFacts:
    profile: str
    production: bool
    read_only: bool
    me: Myself | None = None
    pool: PoolStatus | None = None
    link: LinkStatus = NOT_YET
    answered_at: datetime | None = None
    now: datetime | None = None

    @property
    def age(self) -> float | None:
        if self.answered_at is None or self.now is None:
            return None
        return (self.now - self.answered_at).total_seconds()


def place_text(facts: HeaderFacts, room: int) -> Content:
    """Profile, team and person; the person gives way first on a narrow terminal."""
    style = "$text-error bold reverse" if facts.production else "bold"
    shown = agent_text(f" {facts.profile} ", style, limit=30)
    if facts.me is not None:
        shown += agent_text(f" {facts.me.team}", limit=30)
        if room >= 100:
            shown += agent_text(f" · {facts.me.name} ({facts.me.role.value})", "$text-muted", limit=50)
    if facts.read_only:
        shown += system_text(" read-only", "$text-warning")
    return shown


def link_text(facts: HeaderFacts) -> Content:
    match facts.link.state:
        case LinkState.STARTING:
            return system_text("◌ connecting", "$text-warning")
        case LinkState.LOST:
            since = f", data {span(facts.age)} old" if facts.age is not None else ""
            return system_text(f"✗ lost, retry {facts.link.retries}{since}", "$text-error bold")
        case LinkState.UP:
            if facts.age is not None and facts.age >= FRESH_SECONDS:
                return system_text(f"✓ connected, data {span(facts.age)} old", "$text-warning")
            return system_text("✓ connected", "$text-success")


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
        width = self.size.width
        left = place_text(self.facts, width).pad_right(2) + pool_badge(self.facts.pool)
        right = link_text(self.facts).pad_right(1)
        return left.pad_right(max(1, width - left.cell_length - right.cell_length)) + right

"""What is known of one thing, as much of it as one wants to scroll through."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent_console.tui.agent_text import system_text


class DetailPanel(VerticalScroll, can_focus=False):
    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._sheet = Static(system_text(""))
        self._shown = system_text("")

    def compose(self) -> ComposeResult:
        yield self._sheet

    def show(self, facts: Content) -> None:
        if not facts.is_same(self._shown):
            self._shown = facts
            self._sheet.update(facts)

    def set_stale(self, stale: bool) -> None:
        """What is shown is the last known, not the current: it is dimmed."""
        self.set_class(stale, "stale")

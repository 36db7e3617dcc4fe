"""What is known of one thing, as much of it as one wants to scroll through."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import FactSheet


class DetailPanel(VerticalScroll, can_focus=False):
    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._lines = Static(system_text(""))
        self._sheet = FactSheet()
        self._shown = system_text("")

    def compose(self) -> ComposeResult:
        yield self._lines

    def show(self, sheet: FactSheet) -> None:
        self._sheet = sheet
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def watch_show_vertical_scrollbar(self) -> None:
        """It takes a column of the text: a line laid out without it would be broken again, and its second half
        would stand at the left edge, where only our own words do."""
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        """Only a sheet that reads differently is painted again; none before there is a place for it."""
        width = self.scrollable_content_region.width
        if not width:
            return
        shown = self._sheet.laid_out(width)
        if not shown.is_same(self._shown):
            # As many lines as before need no new layout, which would be one of the whole screen.
            is_as_tall = shown.plain.count("\n") == self._shown.plain.count("\n")
            self._shown = shown
            self._lines.update(shown, layout=not is_as_tall)

    def set_stale(self, stale: bool) -> None:
        """What is shown is the last known, not the current: it is dimmed."""
        self.set_class(stale, "stale")

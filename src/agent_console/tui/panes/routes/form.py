"""A screen with fields in it: nothing typed there is left behind by a single key press."""

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.detail import DetailPanel

NO_REASON = "A reason is needed: the history keeps it."
NO_CONNECTION = "There is no connection; nothing was changed, and what you typed stays."
UNSAVED = "What you typed is not saved. Press the key again to leave without it."


class RouteForm(StackedScreen):
    """Has a panel to read beside its fields, and a line that tells what is wrong."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", id="route_form.close"),
        Binding("down,enter", "app.focus_next", "Next field", id="route_form.next"),
        Binding("up", "app.focus_previous", "Field before", show=False, id="route_form.previous"),
        Binding("pagedown", "read(1)", "Read on", id="route_form.page_down"),
        Binding("pageup", "read(-1)", "Read back", show=False, id="route_form.page_up"),
    ]

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._leaving = self._left = False
        self._panel = DetailPanel(classes="whole")
        self._told = ChangingLine(classes="problem")

    @property
    def is_touched(self) -> bool:
        """Whether anything would be lost with the screen."""
        raise NotImplementedError

    def stay(self) -> None:
        """Something was done here since somebody wanted to leave."""
        self._leaving = False

    def tell(self, words: str) -> None:
        self._told.show(agent_text(words, "$text-error", limit=600))

    def say(self, words: str) -> None:
        self._told.show(system_text(words, "$foreground-muted"))

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    def action_read(self, direction: int) -> None:
        self._panel.scroll_relative(y=direction * max(1, self._panel.size.height - 1), animate=False)

    def leave(self) -> None:
        """At once, or when whatever lies over it is gone: leaving takes the topmost screen, whichever it is."""
        self._left = self.app.screen is not self
        if not self._left:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        if self._left:
            self.leave()

    def action_close(self) -> None:
        # A key that was pressed once more before the screen was gone closes nothing else.
        if self.app.screen is self and self.may_leave():
            self.leave()

    def may_leave(self) -> bool:
        may = self._leaving or not self.is_touched
        self._leaving = True
        if not may:
            self._told.show(system_text(UNSAVED, "$text-warning"))
        return may

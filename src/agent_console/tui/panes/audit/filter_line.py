"""Where somebody types which acts to see."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.audit.filters import HINT
from agent_console.tui.widgets.pasted_line import PastedLine


class AuditFilterLine(Vertical):
    """Hidden until it is opened. What was typed stays there for the next time."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", id="audit.leave_filter")]
    DEFAULT_CSS = """
    AuditFilterLine { height: auto; display: none; }
    AuditFilterLine.open { display: block; }
    AuditFilterLine Input { height: 1; margin: 0 1; background: $panel; }
    AuditFilterLine Static { height: auto; padding: 0 1; }
    """

    class Given(Message):
        """Enter was pressed; whoever can't read it says so with `refuse`, else the line is left."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The keys go back to the list."""

    def __init__(self) -> None:
        super().__init__()
        self._input = PastedLine(compact=True)
        self._told = Static(system_text(HINT, "$foreground-muted"))

    def compose(self) -> ComposeResult:
        yield self._input
        yield self._told

    def open(self) -> None:
        self.add_class("open")
        self._told.update(system_text(HINT, "$foreground-muted"))
        # At once: the next key may be waiting already, and it is text.
        self.screen.set_focus(self._input)

    def refuse(self, why: str) -> None:
        self._told.update(agent_text(why, "$text-error", limit=300))

    @on(PastedLine.Told)
    def _was_pasted(self, message: PastedLine.Told) -> None:
        message.stop()
        self._told.update(system_text(message.words, "$text-warning"))

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.post_message(self.Given(message.value))

    def action_leave(self) -> None:
        self.remove_class("open")
        self.post_message(self.Left())

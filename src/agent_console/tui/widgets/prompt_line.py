"""One line to type into at the foot of a screen: what Enter gives to whoever asked for it."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from agent_console.tui.agent_text import system_text
from agent_console.tui.widgets.pasted_line import PastedLine


class PromptLine(Horizontal):
    """Hidden until it is opened. Esc closes it and nothing was asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", id="prompt.leave")]
    DEFAULT_CSS = """
    PromptLine { height: 1; display: none; padding: 0 1; background: $panel; }
    PromptLine.open { display: block; }
    PromptLine > .question { width: auto; padding: 0 1 0 0; }
    PromptLine > Input { width: 1fr; background: $panel; }
    """

    class Given(Message):
        """`asked` is the name under which it was opened."""

        def __init__(self, asked: str, text: str) -> None:
            super().__init__()
            self.asked = asked
            self.text = text

    class Left(Message):
        """Nothing was given, or it has been given: the keys go back to where they were."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = ""
        self._question = Static(system_text(""), classes="question")
        self._input = PastedLine(compact=True)

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._input

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def open(self, asked: str, question: str) -> None:
        self._asked = asked
        self._question.update(system_text(question, "bold"))
        self._input.value = ""
        self.add_class("open")
        # At once: the next key may be waiting already, and it is text.
        self.screen.set_focus(self._input)

    @on(PastedLine.Told)
    def _was_pasted(self, message: PastedLine.Told) -> None:
        message.stop()
        self.notify(system_text(message.words).plain, severity="warning", markup=False)

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._close()
        if message.value.strip():
            self.post_message(self.Given(self._asked, message.value))

    def action_leave(self) -> None:
        self._close()

    def _close(self) -> None:
        self.remove_class("open")
        self.post_message(self.Left())

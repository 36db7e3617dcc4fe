"""The second key: asked before anything is approved."""

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent_console.tui.agent_text import system_text

SURE = "y"
TOO_QUICK = "Too quick to have been read. y approves, anything else doesn't."


class ApproveQuestion(ModalScreen[bool]):
    """True when `y` was pressed. Any other key is a no, Enter and Esc too; what is pasted is no key at all.

    A `y` that comes with the question itself was not meant for it: it is passed over, and said so.
    """

    def __init__(self, words: Content, passed: Callable[[], float], grace: float) -> None:
        """`passed` tells seconds on a clock that never jumps."""
        super().__init__()
        self._words: Content = words
        self._passed = passed
        self._grace = grace
        self._asked_at = passed()
        self._line = Static(self._words, classes="question")

    def compose(self) -> ComposeResult:
        with Vertical(classes="armed"):
            yield self._line

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key != SURE:
            self.answer(False)
        elif self._passed() - self._asked_at < self._grace:
            self._line.update(self._words + system_text(f"\n{TOO_QUICK}", "$text-warning"))
        else:
            self.answer(True)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.answer(False)

    def answer(self, sure: bool) -> None:
        """Once: a second key, or a change under the question, may come while it is being closed."""
        if self.is_current:
            self.dismiss(sure)

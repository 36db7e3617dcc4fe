"""Where somebody writes what they are about to say: several lines, and to whom they go."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from agent_console.tui.agent_text import system_text

HINT = "F5 sends   F4 to whom   Esc keeps it as a draft (then S sends it, c goes on)"


class DraftText(TextArea):
    """Enter is a new line. A pasted text is text, with all its lines; only a key that types nothing sends.

    A terminal without F5 has Esc and then S; over a slow line the two may arrive as one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,alt+shift+s", "send", "Send", id="draft.send"),
        Binding("f4", "recipients", "To whom", id="draft.to"),
    ]

    def on_unmount(self) -> None:
        """A text area watches the theme of the app, which would keep it until somebody changes that."""
        watching: list[tuple[object, object]] = getattr(self.app, "__watchers", {}).get("theme", [])
        watching[:] = [(who, told) for who, told in watching if who is not self]

    def action_send(self) -> None:
        self.post_message(DraftBox.SendWanted())

    def action_recipients(self) -> None:
        self.post_message(DraftBox.RecipientsWanted())


class DraftBox(Vertical):
    """Hidden until somebody writes."""

    DEFAULT_CSS = """
    DraftBox { height: auto; display: none; background: $panel; padding: 0 1; }
    DraftBox.open { display: block; }
    DraftBox > .to { height: 1; }
    DraftBox > DraftText { height: auto; min-height: 3; max-height: 8; background: $surface; }
    DraftBox > .hint { height: auto; max-height: 3; }
    """

    class SendWanted(Message):
        pass

    class RecipientsWanted(Message):
        pass

    class Edited(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._to = Static(system_text(""), classes="to")
        self._text = DraftText(tab_behavior="focus", soft_wrap=True, show_line_numbers=False, compact=True)
        self._text.cursor_blink = False
        self._hint = Static(system_text(HINT, "$foreground-muted"), classes="hint")

    def compose(self) -> ComposeResult:
        yield self._to
        yield self._text
        yield self._hint

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def open(self, text: str) -> None:
        self.show(text)
        self._text.move_cursor(self._text.document.end)
        self.add_class("open")
        # At once: the next key may be waiting already, and it is text.
        self.screen.set_focus(self._text)

    def show(self, text: str) -> None:
        if self._text.text != text:
            self._text.text = text

    def close(self) -> None:
        self.remove_class("open")

    def say_to(self, whom: Content) -> None:
        self._to.update(whom)

    def remark(self, words: Content) -> None:
        """Something about the draft, such as why it was refused; no words bring the keys back."""
        self._hint.update(words if words.plain else system_text(HINT, "$foreground-muted"))

    @on(TextArea.Changed)
    def _changed(self, message: TextArea.Changed) -> None:
        message.stop()
        self.post_message(self.Edited(self._text.text))

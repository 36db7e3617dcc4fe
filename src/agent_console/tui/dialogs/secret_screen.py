"""A secret, shown once."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.copying import copy
from agent_console.tui.dialogs.dialog import Dialog

ONCE = "It is shown this once and kept nowhere. Whoever has it can use it."
SENT = "Sent to your terminal's clipboard."


class SecretScreen(Dialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "I have kept it", id="secret.close"),
        Binding("c", "copy", "Copy", id="secret.copy"),
    ]

    def __init__(self, what: str, secret: str) -> None:
        super().__init__()
        self._what = what
        self._secret = secret

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(agent_text(self._what, "bold", limit=300), classes="about")
            yield Static(system_text(ONCE, "$text-warning"))
            yield Static(system_text(""))
            yield Static(agent_text(self._secret, "bold"))
            yield Static(system_text(""), id="copied")
            yield Static(system_text("c copy   Esc I have kept it", "$foreground-muted"), classes="hint")

    def action_copy(self) -> None:
        sent = copy(self.app, self._secret, "secret")
        words = SENT if sent.sequence else sent.words
        self.query_one("#copied", Static).update(system_text(words, "$foreground-muted"))

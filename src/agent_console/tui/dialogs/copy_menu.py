"""What of a thing is sent to the clipboard."""

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.copying import Copied
from agent_console.tui.dialogs.dialog import Dialog


def _line(what: Copied, text: str) -> Content:
    shown = " ".join(text[:200].split())
    return system_text(f"{what.value:<6}", "bold") + agent_text(shown, "$foreground-muted", limit=100)


class CopyMenu(Dialog[Copied | None]):
    """The id is first, so that y and Enter send it."""

    LINES_AROUND = 8
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Back", id="copy.close")]

    def __init__(self, choices: Mapping[Copied, str]) -> None:
        super().__init__()
        self._choices = dict(choices)

    def compose(self) -> ComposeResult:
        lines = (Option(_line(what, text), id=what.value) for what, text in self._choices.items())
        with Vertical(classes="dialog"):
            yield Static(system_text("Send to your terminal's clipboard", "bold"), classes="about")
            yield OptionList(*lines, classes="scrolls")
            yield Static(system_text("Enter send   Esc back", "$foreground-muted"), classes="hint")

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(None if message.option.id is None else Copied(message.option.id))

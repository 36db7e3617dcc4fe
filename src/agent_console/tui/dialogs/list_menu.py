"""The lists that have no key of their own."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.repository.operations import NOUNS
from agent_console.tui.agent_text import system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.wanted import PaneWanted
from agent_console.tui.widgets.pane_tabs import MORE_KEY, PANE_KEYS

NAME_CELLS = 22


def _line(noun: str) -> Content:
    name = system_text(noun.replace("_", " ").capitalize().ljust(NAME_CELLS))
    return name + system_text(NOUNS[noun])


class ListMenu(Dialog[str | None]):
    LINES_AROUND = 8
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back", id="lists.close"),
        *PANE_KEYS,
        MORE_KEY,
    ]

    def __init__(self, nouns: tuple[str, ...]) -> None:
        super().__init__()
        self._nouns = nouns

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(system_text("More lists", "bold"), classes="about")
            yield OptionList(*(Option(_line(noun), id=noun) for noun in self._nouns), classes="scrolls")
            yield Static(system_text("Enter open   Esc back", "$foreground-muted"), classes="hint")

    def action_pane(self, name: str) -> None:
        """The keys of the panes lead there from here too."""
        self.dismiss(None)
        self.app.post_message(PaneWanted(name))

    def action_more(self) -> None:
        self.action_leave()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(message.option.id)

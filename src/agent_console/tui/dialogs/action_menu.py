"""What can be done to one thing, or to its list."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.tui.actions import Action
from agent_console.tui.agent_text import system_text

TITLE_CELLS = 20


def _line(action: Action) -> Content:
    style = "$text-warning" if action.danger else ""
    return system_text(action.title.ljust(TITLE_CELLS), style) + system_text(
        action.operation.summary, "$foreground-muted"
    )


class ActionMenu(ModalScreen[Action | None]):
    """Choosing does nothing yet: a form that names the thing follows."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Back", id="menu.close")]

    def __init__(self, about: Content, actions: tuple[Action, ...]) -> None:
        super().__init__()
        self._about: Content = about
        self._actions = actions

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._about, classes="about")
            yield OptionList(*(Option(_line(action), id=action.operation.name) for action in self._actions))
            yield Static(system_text("Enter choose   Esc back", "$foreground-muted"), classes="hint")

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        chosen = message.option.id
        self.dismiss(next(action for action in self._actions if action.operation.name == chosen))

    def action_leave(self) -> None:
        self.dismiss(None)

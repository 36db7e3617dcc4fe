"""What can be done to one thing, or to its list."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.tui.actions import Action
from agent_console.tui.agent_text import system_text
from agent_console.tui.dialogs.dialog import Dialog

GAP = 2


def _title(action: Action) -> str:
    return f"{action.title} !" if action.danger else action.title


def _line(action: Action, title_cells: int) -> Content:
    title = system_text(_title(action), "$text-warning" if action.danger else "")
    return title.pad_right(title_cells + GAP - title.cell_length) + system_text(action.summary)


class ActionMenu(Dialog[Action | None]):
    """Choosing does nothing yet: a form that names the thing follows."""

    LINES_AROUND = 8
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Back", id="menu.close")]

    def __init__(self, about: Content, actions: tuple[Action, ...]) -> None:
        super().__init__()
        self._about: Content = about
        self._actions = actions
        self._title_cells = max(len(_title(action)) for action in actions)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._about, classes="about")
            yield OptionList(
                *(Option(_line(action, self._title_cells), id=action.operation.name) for action in self._actions),
                classes="scrolls",
            )
            yield Static(
                system_text("Enter choose   Esc back   ! asks for a key of its own", "$foreground-muted"),
                classes="hint",
            )

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        chosen = message.option.id
        self.dismiss(next(action for action in self._actions if action.operation.name == chosen))

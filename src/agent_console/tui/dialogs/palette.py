"""The palette: everything that can be done from here, found by a few of its letters."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.commands import Command, fuzzy
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.widgets.still_input import StillInput

NAME_CELLS = 28


def _line(command: Command) -> Content:
    name = agent_text(f"{command.name} {command.argument}".rstrip(), limit=NAME_CELLS)
    return name.pad_right(max(1, NAME_CELLS + 1 - name.cell_length)) + agent_text(
        command.summary, "$foreground-muted", limit=120
    )


class Palette(Dialog[Command | None]):
    """Keys go into the line; up and down move in the list below it."""

    LINES_AROUND = 9
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="palette.leave"),
        Binding("down", "move(1)", "Down", show=False, id="palette.down"),
        Binding("up", "move(-1)", "Up", show=False, id="palette.up"),
        Binding("pagedown", "move(10)", "Page down", show=False, id="palette.page_down"),
        Binding("pageup", "move(-10)", "Page up", show=False, id="palette.page_up"),
    ]

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        self._commands = tuple(commands)
        self._found = fuzzy(self._commands, "")
        self._input = StillInput(compact=True, max_length=100)
        self._list = OptionList(classes="scrolls")
        # The line keeps the keys.
        self._list.can_focus = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(system_text("Everything by name", "bold"), classes="about")
            yield self._input
            yield self._list
            yield Static(
                system_text("Enter does it   Esc leaves   ! asks first", "$foreground-muted"), classes="hint"
            )

    def on_mount(self) -> None:
        # At once: the next key may be waiting already.
        self.set_focus(self._input)
        self._show()

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        self._found = fuzzy(self._commands, message.value)
        self._show()

    def _show(self) -> None:
        self._list.clear_options()
        self._list.add_options([Option(_line(command)) for command in self._found])
        self._list.highlighted = 0 if self._found else None

    def action_move(self, steps: int) -> None:
        if self._found:
            now = self._list.highlighted or 0
            self._list.highlighted = max(0, min(len(self._found) - 1, now + steps))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._choose(self._list.highlighted)

    @on(OptionList.OptionSelected)
    def _clicked(self, message: OptionList.OptionSelected) -> None:
        self._choose(message.option_index)

    def _choose(self, place: int | None) -> None:
        if place is not None and place < len(self._found):
            self.dismiss(self._found[place])

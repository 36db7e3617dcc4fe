"""The command line: `:` and a line to type into at the foot of whatever is shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.commands import Command, UnknownCommand, command_in, completions
from agent_console.tui.widgets.completing import Completing, TypedBefore
from agent_console.tui.widgets.still_input import StillInput

LINE_MOST = 1_000
OFFERED_AT_MOST = 30
GAP = 3


class CommandScreen(ModalScreen[str | None]):
    """Gives a line that names a command; what can't be obeyed stays, with a sentence about it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="command.leave"),
        Binding("tab", "complete", "Complete", id="command.complete"),
        Binding("up", "earlier(1)", "Earlier", show=False, id="command.earlier"),
        Binding("down", "earlier(-1)", "Later", show=False, id="command.later"),
    ]
    DEFAULT_CSS = """
    CommandScreen > Vertical { height: auto; background: $panel; }
    CommandScreen .offered { height: auto; max-height: 6; padding: 0 1; }
    CommandScreen .typing { layout: horizontal; height: 1; padding: 0 1; }
    CommandScreen .question { width: 2; }
    CommandScreen Input { width: 1fr; background: $panel; }
    """

    def __init__(self, commands: Sequence[Command], before: TypedBefore, text: str = "") -> None:
        super().__init__()
        self._commands = tuple(commands)
        self._before = before
        before.back = 0
        self._completing: Completing | None = None
        self._offered = Static(system_text(""), classes="offered")
        self._input = StillInput(text, compact=True, max_length=LINE_MOST)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._offered
            with Container(classes="typing"):
                yield Static(system_text(":", "bold"), classes="question")
                yield self._input

    def on_mount(self) -> None:
        # At once: the next key may be waiting already.
        self.set_focus(self._input)
        self._input.cursor_position = len(self._input.value)
        self._show_offered()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._completing = None
        self._before.back = 0
        self._show_offered()

    def _show_offered(self) -> None:
        self._offered.update(self._words())

    def _words(self) -> Content:
        line = self._input.value
        choices = completions(self._commands, line)
        summary = self._summary(line)
        if not choices.values:
            return summary or system_text("Enter does it, Esc leaves", "$foreground-muted")
        first = agent_text(choices.values[0], "bold", limit=60)
        rest = (agent_text(value, "$foreground-muted", limit=60) for value in choices.values[1:OFFERED_AT_MOST])
        more = "…" if len(choices.values) > OFFERED_AT_MOST else ""
        offered = [one.pad_right(GAP) for one in (first, *rest)]
        shown = system_text("").join(offered) + system_text(more, "$foreground-muted")
        return shown + system_text("\n") + summary if summary else shown

    def _summary(self, line: str) -> Content:
        """What the command that is typed does, and what it takes."""
        try:
            command, _ = command_in(self._commands, line)
        except UnknownCommand:
            return system_text("")
        takes = f"{command.name} {command.argument}".rstrip()
        return agent_text(f"{takes}: {command.summary}", "$foreground-muted", limit=200)

    def action_complete(self) -> None:
        if self._completing is not None:
            self._completing = self._completing.next()
        else:
            line = self._input.value
            choices = completions(self._commands, line)
            self._completing = Completing.between(line, choices.start, len(line), choices.values)
        if (completing := self._completing) is None:
            return
        self._set(f"{completing.text} " if completing.is_only_one else completing.text)
        if completing.is_only_one:
            self._completing = None
            self._show_offered()

    def action_earlier(self, steps: int) -> None:
        self._completing = None
        self._set(self._before.go(steps, self._input.value))
        self._show_offered()

    def _set(self, text: str) -> None:
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self._input.cursor_position = len(text)

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        if not message.value.strip():
            self.dismiss(None)
            return
        try:
            command, rest = command_in(self._commands, message.value)
        except UnknownCommand as error:
            self._refuse(str(error))
            return
        if command.needs_argument and not rest:
            self._refuse(f"{command.name} needs {command.argument}.")
        elif command.values and not command.others and rest and rest not in command.values:
            self._refuse(f"{command.name} takes {', '.join(command.values)}.")
        else:
            self._before.add(message.value.strip())
            self.dismiss(message.value)

    def _refuse(self, words: str) -> None:
        self._offered.update(agent_text(f"✗ {words}", "$text-error", limit=200))

    def action_leave(self) -> None:
        self.dismiss(None)

"""The part of the console that obeys commands given by name, and sends to the clipboard."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from textual import events, work
from textual.binding import Binding, BindingType
from textual.filter import LineFilter, Monochrome

from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_text
from agent_console.tui.terminal.terminal_app import TerminalApp
from agent_console.tui.terminal.without_colour import WithoutColour
from agent_console.tui.themes import MONO, theme_for
from agent_console.tui.wanted import ThingWanted
from agent_console.tui.widgets.completing import TypedBefore

if TYPE_CHECKING:
    from agent_console.domain.records import Record
    from agent_console.tui.commands import Command, Does
    from agent_console.tui.link import Link
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.pane import Pane, View
    from agent_console.tui.panes.surroundings import Surroundings

DOING = "doing"
COMMANDING = "commanding"
MOUSE_ON = "\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h"
MOUSE_OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
WITHOUT_COLOUR = WithoutColour()
"""One for all: a painted line that was filtered is known by its filter."""


@runtime_checkable
class LooksAtOne(Protocol):
    """What shows one thing, or has a cursor on one."""

    @property
    def looked_at(self) -> "tuple[ListKind, Record] | None": ...


class Commanding(TerminalApp[None]):
    """Knows by name what the panes, the keys and the operations can do. The app says where one is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("colon", "command", "Command", show=False, key_display=":", id="app.command"),
        Binding("ctrl+p", "palette", "Everything by name", show=False, id="app.palette"),
        Binding("y", "copy", "Copy", show=False, id="app.copy"),
    ]

    link: "Link"
    _around: "Surroundings | None"
    _panes: "tuple[Pane, ...]"
    _is_mono = False
    key_problems: tuple[str, ...] = ()
    """What is wrong with the keymap, for the help."""

    @cached_property
    def _given_before(self) -> TypedBefore:
        return TypedBefore()

    @property
    def view(self) -> "View":
        raise NotImplementedError

    def action_pane(self, name: str) -> None:
        raise NotImplementedError

    async def _show_list(self, kind: "ListKind") -> None:
        raise NotImplementedError

    def get_line_filters(self) -> list[LineFilter]:
        usual = super().get_line_filters()
        coloured = [one for one in usual if not isinstance(one, Monochrome)]
        return [*coloured, WITHOUT_COLOUR] if self._is_mono or len(coloured) < len(usual) else usual

    def on_key(self, event: events.Key) -> None:
        """A key that was on its way when a line to type into opened is text, never an action.

        A line that has the keys keeps what can be printed to itself, so this one was pressed before it had them.
        """
        from textual.widgets import Input, TextArea

        line, letter = self.focused, event.character if event.is_printable else None
        if isinstance(line, TextArea) and event.key == "enter":
            # Nothing is bound there: it takes the key like a letter.
            letter = "\n"
        if letter is None or not isinstance(line, Input | TextArea):
            return
        event.prevent_default()
        if isinstance(line, Input):
            line.insert_text_at_cursor(letter)
        else:
            line.insert(letter)

    # The command line and the palette

    async def action_command(self) -> None:
        await self._ask_for_command("")

    async def _ask_for_command(self, text: str) -> None:
        """Open before the next key is looked at: what is typed fast behind the colon is text, never an action."""
        from agent_console.tui.commands import command_in
        from agent_console.tui.dialogs.command_line import CommandScreen

        if not self._panes or self.screen.is_modal:
            return
        commands = self._commands()

        def given(line: str | None) -> None:
            if line is not None:
                self.run_worker(self._obey(*command_in(commands, line)), group=COMMANDING)

        await self.push_screen(CommandScreen(commands, self._given_before, text), given)

    async def action_palette(self) -> None:
        from agent_console.tui.dialogs.palette import Palette

        if not self._panes or self.screen.is_modal:
            return

        def chosen(command: "Command | None") -> None:
            if command is None:
                return
            if command.argument and not self._is_about_here(command):
                self.call_later(self._ask_for_command, f"{command.name} ")
            else:
                self.run_worker(self._obey(command, ""), group=COMMANDING)

        await self.push_screen(Palette(self._commands()), chosen)

    def _is_about_here(self, command: "Command") -> bool:
        """Whether what it needs is under the cursor already."""
        from agent_console.tui.commands import Does

        looked_at = self._looked_at()
        noun = command.what.partition(".")[0]
        return (
            command.does is Does.OPERATION and looked_at is not None and looked_at[0].list_operation.noun == noun
        )

    def _commands(self) -> "tuple[Command, ...]":
        """Those of the screen that is shown, before anything lies over it."""
        from agent_console.tui.commands import LiveKey, every_command
        from agent_console.tui.help import shown_key
        from agent_console.tui.key_words import words_of
        from agent_console.tui.panes.every import KINDS, PANES
        from agent_console.tui.panes.narrowed_pane import NarrowedPane

        keys = (
            LiveKey(shown_key(key), active.binding.id, words_of(active))
            for key, active in self.screen.active_bindings.items()
            if active.binding.id and active.binding.description
        )
        panes = list(PANES)
        role = None if self._around is None else self._around.acting_as
        kinds = self._readable(KINDS)
        return every_command(kinds, panes, role, keys, on_a_list=isinstance(self.view, NarrowedPane))

    def _readable(self, kinds: "Mapping[str, ListKind]") -> "dict[str, ListKind]":
        from agent_console.tui.actions import may_read

        role = None if self.link.me is None else self.link.me.role
        return {name: kind for name, kind in kinds.items() if may_read(kind.list_operation, role)}

    async def _obey(self, command: "Command", rest: str) -> None:
        from agent_console.tui.commands import Does

        match command.does:
            case Does.PANE:
                await self._go_to(command.what)
            case Does.OPERATION:
                await self._do_named(command.what, rest)
            case Does.KEY:
                await self._press(command.what)
            case Does.OPEN:
                self._open_by_id(rest)
            case Does.THEME:
                self.show_theme(rest)
            case Does.MOUSE:
                self.set_mouse(rest == "on")
            case Does.FILTER | Does.FIND | Does.ORDER:
                self._narrow(command.does, rest)

    async def _go_to(self, name: str) -> None:
        from agent_console.tui.panes.every import KINDS, PANES

        if name in PANES:
            self.action_pane(name)
        else:
            await self._show_list(KINDS[name])

    async def _press(self, binding_id: str) -> None:
        active = (active for active in self.screen.active_bindings.values() if active.binding.id == binding_id)
        if (found := next(active, None)) is not None:
            await self.run_action(found.binding.action, found.node)

    def _open_by_id(self, text: str) -> None:
        from agent_console.tui.commands import noun_of
        from agent_console.tui.panes.every import KINDS

        noun = noun_of(KINDS, text)
        if noun is None:
            self._say("That is the id of nothing that can be opened; an id looks like job_… or agt_…")
        else:
            self.post_message(ThingWanted(noun, text))

    def _narrow(self, does: "Does", rest: str) -> None:
        from agent_console.domain.filters import FilterMistake
        from agent_console.domain.list_order import ListOrder
        from agent_console.tui.commands import Does
        from agent_console.tui.panes.narrowed_pane import NarrowedPane

        pane = self.view
        if not isinstance(pane, NarrowedPane):
            return
        if does is Does.FIND:
            pane.find_first(rest)
        elif does is Does.ORDER and pane.may_narrow("turn_round"):
            pane.read_from(ListOrder(rest))
        elif does is Does.FILTER and pane.kind.filters is not None:
            try:
                pane.kind.filters.read(rest)
            except FilterMistake as mistake:
                self._say(str(mistake))
            else:
                pane.narrow_to(rest)
        else:
            self._say("That can't be done with this list; ? shows the keys that work here.")

    def _say(self, words: str) -> None:
        self.notify(agent_text(words, limit=300).plain, severity="warning", markup=False)

    # What is done by name

    async def _do_named(self, operation_name: str, thing_id: str) -> None:
        from agent_console.tui.actions import WITHOUT_A_LIST
        from agent_console.tui.doing import do_something
        from agent_console.tui.panes.every import KINDS
        from agent_console.tui.subject import Subject

        noun = operation_name.partition(".")[0]
        kind = KINDS[WITHOUT_A_LIST.get(noun, noun)]
        record = None
        if not _is_of_list(operation_name):
            record = await self._named_record(kind, thing_id)
            if record is None:
                return
        query = kind.query(kind.groups[0].key, 1, None)
        await do_something(self, self.link, Subject(kind, query, record), named=operation_name)

    async def _named_record(self, kind: "ListKind", thing_id: str) -> "Record | None":
        """The thing of this id as it is now; without an id, what one looks at. Why there is none is said."""
        from agent_console.tui.by_id import record_by_id

        if not thing_id:
            looked_at = self._looked_at()
            if looked_at is not None and looked_at[0].list_operation is kind.list_operation:
                return looked_at[1]
            self._say("Which one? Its id has to follow, or the cursor has to be on it.")
            return None
        try:
            return await record_by_id(self.link, kind, thing_id)
        except ConsoleError as error:
            self._say(str(error))
            return None

    def _looked_at(self) -> "tuple[ListKind, Record] | None":
        view = self.view
        return view.looked_at if isinstance(view, LooksAtOne) else None

    # How it looks and listens

    async def take_keymap(self, keymap: Mapping[str, str]) -> None:
        """The keys as they were remapped; what is wrong with that is said, and the rest of it counts."""
        self.key_problems = ()
        if not keymap:
            return
        self.set_keymap(dict(keymap))
        module = await asyncio.to_thread(import_module, "agent_console.tui.keymap")
        self.key_problems = await asyncio.to_thread(module.keymap_problems, keymap)
        if self.key_problems:
            first, *others = self.key_problems
            more = f" And {len(others):,} more: ? lists them." if others else ""
            self._say(f"{first}{more}")

    def show_theme(self, name: str) -> None:
        """For this session; the profile says how it begins."""
        self._is_mono = name == MONO
        self.theme = theme_for(name)
        self.redraw()

    def set_mouse(self, on: bool) -> None:
        """Without it the terminal itself selects text again."""
        if self._driver is not None:
            self._driver.write(MOUSE_ON if on else MOUSE_OFF)
            self._driver.flush()
        self._say("The mouse is on." if on else "The mouse is off: your terminal selects text.")

    # Sending to the clipboard

    def action_copy(self) -> None:
        looked_at = self._looked_at() if self._panes and not self.screen.is_modal else None
        if looked_at is not None:
            self._copy(*looked_at)

    @work(group=COMMANDING)
    async def _copy(self, kind: "ListKind", record: "Record") -> None:
        from agent_console.tui.copying import choices_of, copy_and_tell
        from agent_console.tui.dialogs.copy_menu import CopyMenu

        if self._around is None:
            return
        line = "  ".join(cell.plain for cell in kind.cells(record, self._around.clock()))
        choices = choices_of(kind, record, line)
        what = await self.push_screen_wait(CopyMenu(choices))
        if what is not None:
            copy_and_tell(self, choices[what], what.value)


def _is_of_list(operation_name: str) -> bool:
    """What is done without choosing a thing first, whatever the cursor is on."""
    from agent_console.repository.operations import OPERATIONS

    operation = next(operation for operation in OPERATIONS if operation.name == operation_name)
    return not operation.path_fields

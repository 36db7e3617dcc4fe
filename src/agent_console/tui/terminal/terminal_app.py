"""The app every screen of the console runs in: guarded lines, few bytes, quiet crashes."""

import os
from io import StringIO
from typing import Any

from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, InlineUpdate, LayoutUpdate
from textual.app import App, ReturnType
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip
from textual.types import CSSPathType
from textual.widget import Widget

from agent_console.tui.terminal.background_erase import erase_keeps_background
from agent_console.tui.terminal.cell_diff import CellDiff
from agent_console.tui.terminal.driver import ConsoleDriver
from agent_console.tui.terminal.front_first import FrontFirst
from agent_console.tui.terminal.hidden_characters import shown
from agent_console.tui.terminal.kept_lines import KeptLines
from agent_console.tui.terminal.keys_at_once import KeysOnTheirWay, done_at_once
from agent_console.tui.terminal.line_guard import LineGuard

COLOUR_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}


class Frame(CompositorUpdate):
    """Bytes made ready; Textual adds the cursor's position and the marks of a synchronised update."""

    def __init__(self, data: str) -> None:
        self._data = data

    def render_segments(self, console: Console) -> str:
        return self._data

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._data)


class TerminalApp(App[ReturnType]):
    """Run it with `restore.run_restoring`. `redraw` heals a screen that something else has written on."""

    def __init__(
        self,
        driver_class: type[Driver] | None = None,
        css_path: CSSPathType | None = None,
        watch_css: bool = False,
        ansi_color: bool | None = None,
    ) -> None:
        super().__init__(driver_class, css_path, watch_css, ansi_color)
        self.cell_diff = CellDiff(erase_keeps_background=erase_keeps_background(os.environ.get("TERM", "")))
        self.line_guard = LineGuard()
        self.crash_notes: list[str] = []
        self._cursor_shown_at: Offset | None = None
        self._keys_on_their_way = KeysOnTheirWay()

    @property
    def crash(self) -> Exception | None:
        """The error that ended the app, if one did."""
        return self._exception

    @property
    def holds_terminal(self) -> bool:
        return isinstance(self._driver, ConsoleDriver) and self._driver.holds_terminal

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        return ConsoleDriver if chosen is LinuxDriver else chosen

    def get_line_filters(self) -> list[LineFilter]:
        # First, while control segments can still be told from text: Textual's own filters drop the mark.
        return [self.line_guard, *super().get_line_filters()]

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _app: self.redraw(), immediate=True)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key):
            await super().on_event(event)
            return
        has_come_up = event.is_forwarded
        if not has_come_up:
            if not self._keys_on_their_way and await done_at_once(self, event):
                return
            self._keys_on_their_way.handed_on(event)
        await super().on_event(event)
        if has_come_up or not event.is_forwarded:
            # What it has asked for, such as the focus for a line to type into, comes before the next key.
            self.call_later(self._keys_on_their_way.done, event)

    def on_resize(self, event: events.Resize) -> None:
        # The same size again: it was another one in between, or the terminal was lent, and Textual won't draw.
        if self.cell_diff.shows(event.size):
            self.redraw()
        self.cell_diff.resized(event.size)

    def redraw(self) -> None:
        """Send every cell again, whatever the terminal is thought to show."""
        self.cell_diff.forget()
        self._cursor_shown_at = None
        self.refresh()

    def action_redraw(self) -> None:
        self.redraw()

    def end_soon(self) -> bool:
        """End from any thread, whatever the loop is doing. False when there is no loop to end."""
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(self.exit)
        except RuntimeError:
            return False
        return True

    def panic(self, *renderables: RenderableType) -> None:
        """End the app. What Textual would have printed is kept for the crash report."""
        page = Console(file=StringIO(), width=110, color_system=None, markup=False, highlight=False)
        for renderable in renderables:
            with page.capture() as text:
                page.print(renderable)
            self.crash_notes.append(text.get())
        self._close_messages_no_wait()

    def _fatal_error(self) -> None:
        # Textual would print the traceback with its local variables, the password in a DSN among them.
        self._close_messages_no_wait()

    def _register(self, parent: DOMNode, *widgets: Widget, **place: Any) -> list[Widget]:
        for widget in widgets:
            widget._styles_cache.__class__ = KeptLines
            if isinstance(widget, Screen):
                widget._compositor.__class__ = FrontFirst
        return super()._register(parent, *widgets, **place)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, self._fewest_bytes(renderable) if self._will_display else renderable)

    @property
    def _will_display(self) -> bool:
        """Whether Textual would write an update now. The shadow must not learn of one that it drops."""
        ready = self._running and not self._closed and not self._batch_count
        return ready and self._driver is not None and not self.is_headless

    def _fewest_bytes(self, renderable: RenderableType | None) -> RenderableType | None:
        if renderable is None:
            return None
        if isinstance(renderable, InlineUpdate):
            return InlineUpdate([_shown(strip) for strip in renderable.strips], renderable.clear)
        if not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            raise TypeError(f"Textual displays a {type(renderable).__name__}, which nothing here guards")
        colours = COLOUR_SYSTEMS.get(self.console.color_system or "", ColorSystem.TRUECOLOR)
        data = self.cell_diff.difference(renderable, colours)
        cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        if not data and cursor == self._cursor_shown_at:
            return None
        self._cursor_shown_at = cursor
        return Frame(data)


def _shown(strip: Strip) -> Strip:
    return Strip([Segment(shown(text), style) for text, style, control in strip if not control])

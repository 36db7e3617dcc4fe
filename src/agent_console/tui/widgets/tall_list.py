"""A list of items of different heights: any number of them, the cost of one screen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from agent_console.tui.agent_text import system_text
from agent_console.tui.terminal.keys_at_once import DoesKeysAtOnce
from agent_console.tui.widgets.tall_source import BLANK, LinesOnce, NoItems, TallLine, TallSource
from agent_console.tui.widgets.tall_window import Heights, TallWindow
from agent_console.tui.widgets.virtual_table_lines import CURSOR_GLYPH, centred, paint

GUTTER = 2
"""Cells at the left edge: the cursor's glyph and a space."""
WHEEL_LINES = 3


class TallList(DoesKeysAtOnce, Widget, can_focus=True, inherit_bindings=False):
    """Whatever is shown next, the cursor stays on its item and the item on its line of the screen."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "tall-list--line",
        "tall-list--cursor",
        "tall-list--stale",
        "tall-list--empty",
    }
    DEFAULT_CSS = """
    TallList { height: 1fr; }
    TallList > .tall-list--cursor { background: $surface-lighten-2; }
    TallList:focus > .tall-list--cursor { background: $primary 30%; text-style: bold; }
    TallList > .tall-list--stale { text-style: dim; }
    TallList > .tall-list--empty { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "up", "Up", show=False, id="tall.up"),
        Binding("down,j", "down", "Down", show=False, id="tall.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="tall.page_up"),
        Binding("pagedown,space", "page(1)", "Page down", show=False, id="tall.page_down"),
        Binding("enter", "choose", "Open", id="tall.open"),
    ]

    stale: reactive[bool] = reactive(False)
    """The items are the last known ones, not the current ones: all of them are dimmed."""

    class Moved(Message, bubble=False):
        """The cursor or the screen is elsewhere. Told once it is painted, to the list itself."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, TallList.Moved)

    class Chosen(Message):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, empty: Content, id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty: Content = empty
        self._source: TallSource = NoItems()
        self._window = TallWindow()
        self._cursor = 0
        self._came_up = False
        self._on_screen: dict[int, TallLine] = {}
        self._painted: dict[int, TallLine] = {}
        self._laid = LinesOnce(self._source, 0)
        self._has_moved = False

    # What the screen around it reads

    @property
    def source(self) -> TallSource:
        return self._source

    @property
    def cursor_key(self) -> str | None:
        return self._source.key_at(self._cursor) if len(self._source) else None

    @property
    def top_index(self) -> int:
        return self._window.top

    @property
    def came_up(self) -> bool:
        """Whether the last move was towards the beginning."""
        return self._came_up

    @property
    def is_at_end(self) -> bool:
        """The cursor is on the last item, and the last line is on the screen."""
        length = len(self._source)
        return not length or (self._cursor == length - 1 and self._window == self._heights.at_end())

    def line_of(self, key: str) -> int | None:
        """The line of the screen where an item on it or next to it begins; None when it is not held."""
        index = self._source.index_of(key)
        return None if index is None else self._heights.line_of(self._window, index)

    # What the screen around it says

    def say_when_empty(self, words: Content) -> None:
        self._empty = words
        self._settle()

    def show(self, source: TallSource) -> None:
        """Replaces the items; when the cursor's is gone, what was nearest to it on the screen holds its place."""
        held = self._place_held(source)
        self._source = source
        if held is None:
            self._cursor = self._landing(len(source) - 1)
            self._window = self._heights.at_end()
        else:
            index, line, is_cursor = held
            if is_cursor:
                self._cursor = index
            self._window = self._heights.with_line(index, line)
            if not is_cursor:
                self._cursor = self._landing(self._heights.item_at(self._window, max(0, line)))
        self._settle()

    def go_to(self, key: str, *, line: int | None = None) -> bool:
        """Puts the cursor on an item; False when it is not held.

        It comes to this line of the screen; without one it stays where it is, or comes with some lines above it.
        """
        index = self._source.index_of(key)
        if index is None:
            return False
        self._came_up = index < self._cursor
        self._cursor = index
        heights = self._heights
        if line is not None or heights.showing(self._window, index) != self._window:
            self._window = heights.with_line(index, heights.screen // 3 if line is None else line)
        self._settle()
        return True

    def step_to(self, key: str) -> None:
        """Puts the cursor on an item near to it, with the shortest scroll that shows it."""
        if (index := self._source.index_of(key)) is not None:
            self._step_to(index, its_end=index < self._cursor)

    def go_to_end(self) -> None:
        self._came_up = False
        self._cursor = self._landing(len(self._source) - 1)
        self._window = self._heights.at_end()
        self._settle()

    # Keys and mouse

    def action_up(self) -> None:
        if not len(self._source):
            return
        self._came_up = True
        if self._heights.line_of(self._window, self._cursor) < 0:
            self._scroll(-1)
        else:
            self._step_to(self._next_landing(self._cursor, -1), its_end=True)

    def action_down(self) -> None:
        if not len(self._source):
            return
        self._came_up = False
        heights = self._heights
        if heights.line_of(self._window, self._cursor) + heights.of(self._cursor) > heights.screen:
            self._scroll(1)
        else:
            self._step_to(self._next_landing(self._cursor, 1), its_end=False)

    def action_page(self, direction: int) -> None:
        if not len(self._source):
            return
        self._came_up = direction < 0
        before = self._window
        line = max(0, min(self._heights.line_of(before, self._cursor), self._heights.screen - 1))
        self._window = self._heights.scrolled(before, direction * max(1, self._heights.screen - 1))
        if self._window == before:
            self._cursor = self._landing(len(self._source) - 1 if direction > 0 else 0)
        else:
            self._cursor = self._landing(self._heights.item_at(self._window, line))
        self._settle()

    def action_choose(self) -> None:
        if (key := self.cursor_key) is not None:
            self.post_message(self.Chosen(key))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        clicked = None if offset is None else self._painted.get(offset.y)
        # What counts is the item that was painted under the pointer, not the one that is there by now.
        index = None if clicked is None or clicked.key is None else self._source.index_of(clicked.key)
        if index is not None and self._source.can_hold_cursor(index):
            self._cursor = index
            self._settle()

    def on_mouse_scroll_down(self) -> None:
        self._scroll_by_wheel(WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        self._scroll_by_wheel(-WHEEL_LINES)

    def on_resize(self) -> None:
        self._painted.clear()
        if len(self._source):
            self._window = self._heights.showing(self._heights.scrolled(self._window, 0), self._cursor)
        self._settle()

    # Textual calls these

    def watch_stale(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._on_screen.get(y, BLANK)
        self._painted[y] = line
        names = ["tall-list--line" if line.key else "tall-list--empty"]
        if line.cursor:
            names.append("tall-list--cursor")
        if self.stale:
            names.append("tall-list--stale")
        text = line.text if line.key is None else line.text.pad_left(GUTTER)
        if line.glyph:
            text = system_text(f"{CURSOR_GLYPH} ") + line.text
        return paint(text, self.get_visual_style(*names), self.size.width)

    # Inside

    @property
    def _heights(self) -> Heights:
        source, width = self._source, max(1, self.size.width - GUTTER)
        return Heights(len(source), max(1, self.size.height), lambda index: source.height_at(index, width))

    def _place_held(self, after: TallSource) -> tuple[int, int, bool] | None:
        """What keeps its place: an item that is still there, its line, and whether it is the cursor's."""
        if not len(self._source) or not len(after):
            return None
        heights = self._heights
        on_screen = range(self._window.top, heights.item_at(self._window, heights.screen - 1) + 1)
        for index in sorted({self._cursor, *on_screen}, key=lambda item: abs(item - self._cursor)):
            found = after.index_of(self._source.key_at(index))
            if found is not None and (after.can_hold_cursor(found) or index != self._cursor):
                return found, heights.line_of(self._window, index), index == self._cursor
        return None

    def _landing(self, index: int) -> int:
        """The nearest item that can hold the cursor, the one below first."""
        length = len(self._source)
        if not length:
            return 0
        index = max(0, min(index, length - 1))
        for place in chain(range(index, length), range(index - 1, -1, -1)):
            if self._source.can_hold_cursor(place):
                return place
        return index

    def _next_landing(self, index: int, direction: int) -> int:
        place = index + direction
        while 0 <= place < len(self._source):
            if self._source.can_hold_cursor(place):
                return place
            place += direction
        return index

    def _step_to(self, index: int, *, its_end: bool) -> None:
        if index == self._cursor:
            # What stands before the first item, such as where a thread begins, is brought into sight too.
            self._scroll(-1 if its_end else 1)
            return
        self._cursor = index
        self._window = self._heights.showing(self._window, index, its_end=its_end)
        self._settle()

    def _scroll(self, lines: int) -> None:
        self._window = self._heights.scrolled(self._window, lines)
        self._settle()

    def _scroll_by_wheel(self, lines: int) -> None:
        if not len(self._source):
            return
        self._came_up = lines < 0
        heights = self._heights
        self._window = heights.scrolled(self._window, lines)
        top, bottom = self._window.top, heights.item_at(self._window, heights.screen - 1)
        self._cursor = self._landing(max(top, min(self._cursor, bottom)))
        self._settle()

    def _settle(self) -> None:
        if not self.size.height:
            return
        lines = self._on_screen = self._laid_out()
        changed = [
            Region(0, y, self.size.width, 1)
            for y in range(self.size.height)
            if y not in self._painted or not self._painted[y].reads_like(lines.get(y, BLANK))
        ]
        # Without a region Textual would paint everything.
        if changed:
            self.refresh(*changed)
        if self.is_mounted and not self._has_moved:
            # The cursor is painted first: who walks through a list looks there. The screen is told in between.
            self._has_moved = True
            self.call_after_refresh(self.call_after_refresh, self._tell_moved)

    def _tell_moved(self) -> None:
        self._has_moved = False
        self.post_message(self.Moved())

    def _laid_out(self) -> dict[int, TallLine]:
        height = self.size.height
        if not len(self._source):
            notice = centred(self._empty, self.size.width, height)
            return {y: TallLine(line) for y, line in enumerate(notice) if line is not None}
        return dict(enumerate(self._lines_on_screen(height)))

    def _lines_on_screen(self, height: int) -> Iterator[TallLine]:
        index, cut, y = self._window.top, self._window.cut, 0
        width = max(1, self.size.width - GUTTER)
        if self._laid.source is not self._source or self._laid.width != width:
            self._laid = LinesOnce(self._source, width)
        while y < height and index < len(self._source):
            key, is_cursor = self._source.key_at(index), index == self._cursor
            for place, text in enumerate(self._laid.at(index)[cut:], start=cut):
                if y >= height:
                    return
                yield TallLine(text, key, cursor=is_cursor and place == 0, glyph=is_cursor and place == cut)
                y += 1
            index, cut = index + 1, 0

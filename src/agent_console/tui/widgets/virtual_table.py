"""The list every pane is made of: any number of rows, the cost of one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent_console.tui.terminal.keys_at_once import DoesKeysAtOnce
from agent_console.tui.widgets.rows import RowSource
from agent_console.tui.widgets.virtual_table_columns import Column, PlacedColumn, place_columns
from agent_console.tui.widgets.virtual_table_lines import (
    Line,
    centred,
    component_classes,
    header_text,
    paint,
    row_text,
)
from agent_console.tui.widgets.virtual_table_messages import (
    CursorMoved,
    MarksChanged,
    NearEnd,
    RowChosen,
    TableMessage,
    TooManyToMark,
)
from agent_console.tui.widgets.virtual_table_painted import PaintedLines
from agent_console.tui.widgets.virtual_table_window import Window, nearest_survivor

HEADER_HEIGHT = 1
MARK_ALL_LIMIT = 10_000
"""Marks are ids held in memory; for more than this an operation over all matching rows is the way."""


class VirtualTable(DoesKeysAtOnce, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows under a fixed header, with a cursor and marks that belong to row ids.

    Whatever is shown next, the cursor stays on its row and the row on its screen line. The cursor's
    row is always on the screen, so that no key acts on a row that nobody sees. Only lines that differ
    from what is painted are painted again, and only rows on the screen are ever asked for.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "virtual-table--header",
        "virtual-table--row",
        "virtual-table--marked",
        "virtual-table--cursor",
        "virtual-table--stale",
        "virtual-table--empty",
    }

    DEFAULT_CSS = """
    VirtualTable {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    VirtualTable > .virtual-table--header { text-style: bold; color: $text-muted; }
    VirtualTable > .virtual-table--marked { text-style: bold; }
    VirtualTable > .virtual-table--cursor { background: $surface-lighten-2; }
    VirtualTable:focus > .virtual-table--cursor { background: $primary 30%; text-style: bold; }
    VirtualTable > .virtual-table--stale { text-style: dim; }
    VirtualTable > .virtual-table--empty { color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor_up", "Up", show=False, id="table.up"),
        Binding("down,j", "cursor_down", "Down", show=False, id="table.down"),
        Binding("pageup", "page_up", "Page up", show=False, id="table.page_up"),
        Binding("pagedown", "page_down", "Page down", show=False, id="table.page_down"),
        Binding("home,g", "first_row", "First", show=False, id="table.first"),
        Binding("end,G", "last_row", "Last", show=False, id="table.last"),
        Binding("space", "toggle_mark", "Mark", show=False, id="table.mark"),
        Binding("asterisk", "toggle_all_marks", "Mark all or none", show=False, id="table.mark_all"),
        Binding("escape", "unmark", "Unmark", show=False, id="table.unmark"),
        Binding("enter", "choose_row", "Open", id="table.open"),
    ]

    stale: reactive[bool] = reactive(False)
    """The rows are the last known ones, not the current ones: all of them are dimmed."""

    empty: reactive[Content] = reactive(Content.empty, repaint=False)
    """What stands in the middle when there are no rows."""

    def __init__(
        self,
        columns: Sequence[Column],
        source: RowSource,
        *,
        empty: Content,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._placed: tuple[PlacedColumn, ...] = ()
        self._placed_width = -1
        self._source = source
        self._cursor_index = 0
        self._cursor_id = source.row_at(0).id if len(source) else None
        self._marks: frozenset[str] = frozenset()
        self._near_end_told = False
        self._painted = PaintedLines(HEADER_HEIGHT)
        self._has_moved = False
        self.set_reactive(VirtualTable.empty, empty)
        self.set_reactive(VirtualTable.virtual_size, self._wanted_virtual_size())

    # What the pane reads

    @property
    def cursor_id(self) -> str | None:
        return self._cursor_id

    @property
    def cursor_index(self) -> int | None:
        return None if self._cursor_id is None else self._cursor_index

    @property
    def marks(self) -> frozenset[str]:
        return self._marks

    @property
    def source(self) -> RowSource:
        return self._source

    # What the pane says

    def show(self, source: RowSource) -> None:
        """Replaces the rows; cursor, scroll position and marks follow the row ids.

        When the cursor's row is gone the cursor goes to the nearest row that is still there. Marks on
        rows that are gone are taken off, so that a mark is always on something the list holds.
        """
        window = self._window
        cursor_line = self._cursor_index - window.top
        index = nearest_survivor(self._source, self._cursor_index, source, reach=window.height)
        self._source = source
        self._near_end_told = False
        self._put_cursor(index, vanished_id=self._cursor_id)
        self._follow_length()
        self._look_from(index - cursor_line)
        self._settle()
        self._set_marks(frozenset(mark for mark in self._marks if source.index_of(mark) is not None))

    def move_to(self, row_id: str) -> bool:
        """Puts the cursor on a row; False when the list does not hold it."""
        index = self._source.index_of(row_id)
        if index is None:
            return False
        self._move_cursor(index)
        return True

    def unmark_all(self) -> None:
        self._set_marks(frozenset())

    # Keys and mouse

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "choose_row":
                return self._cursor_id is not None
            case "unmark":
                return bool(self._marks)
        return True

    def action_cursor_up(self) -> None:
        self._move_cursor(self._cursor_index - 1)

    def action_cursor_down(self) -> None:
        self._move_cursor(self._cursor_index + 1)

    def action_page_up(self) -> None:
        self._move_page(-1)

    def action_page_down(self) -> None:
        self._move_page(1)

    def action_first_row(self) -> None:
        self._move_cursor(0)

    def action_last_row(self) -> None:
        self._move_cursor(len(self._source) - 1)

    def action_toggle_mark(self) -> None:
        if self._cursor_id is not None:
            self._set_marks(self._marks ^ {self._cursor_id})
            self.action_cursor_down()

    def action_toggle_all_marks(self) -> None:
        count = len(self._source)
        if len(self._marks) == count:
            self.unmark_all()
        elif count > MARK_ALL_LIMIT:
            self._tell(TooManyToMark(self, count, MARK_ALL_LIMIT))
        else:
            self._set_marks(frozenset(self._source.row_at(index).id for index in range(count)))

    def action_unmark(self) -> None:
        self.unmark_all()

    def action_choose_row(self) -> None:
        if self._cursor_id is not None:
            self._tell(RowChosen(self, self._cursor_id))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        clicked = None if offset is None else self._painted.at(offset.y - HEADER_HEIGHT)
        # What counts is the row that was painted under the pointer, not the one that is there by now.
        if clicked is not None and clicked.row is not None:
            self.move_to(clicked.row.id)

    # Textual calls these

    def on_mount(self) -> None:
        if self._cursor_id is not None:
            self.post_message(CursorMoved(self, self._cursor_id))

    def on_resize(self) -> None:
        self._follow_length()
        self._look_from(self._window.top_showing(self._cursor_index))
        self._settle()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            if self._window.height:
                self._put_cursor(self._window.row_inside(self._cursor_index))
            self._settle()

    def watch_empty(self) -> None:
        self._paint_changes()

    def render_line(self, y: int) -> Strip:
        width, _ = size = self.scrollable_size
        if y < HEADER_HEIGHT:
            style = self.get_visual_style("virtual-table--header")
            return paint(header_text(self._columns_at(width)), style, width)
        body_line = y - HEADER_HEIGHT
        _, line = next(self._lines(self._window_in(size), (body_line,)))
        self._painted.painted(body_line, line)
        style = self.get_visual_style(*component_classes(line, self.stale))
        if line.row is not None:
            return paint(row_text(line, line.row, self._columns_at(width)), style, width)
        return paint(line.notice or Content.empty(), style, width)

    # Cursor and window

    @property
    def _window(self) -> Window:
        return self._window_in(self.scrollable_size)

    def _window_in(self, size: Size) -> Window:
        height = max(0, size.height - HEADER_HEIGHT)
        return Window(top=self.scroll_offset.y, height=height, length=len(self._source))

    def _move_page(self, direction: int) -> None:
        window = self._window
        page = direction * max(1, window.height)
        self._move_cursor(self._cursor_index + page, top=window.top + page)

    def _move_cursor(self, index: int, *, top: int | None = None) -> None:
        if not len(self._source):
            return
        before, window = self._cursor_index, self._window
        self._put_cursor(window.row_nearest(index))
        stays = window.is_inside(before) and window.is_inside(self._cursor_index)
        if top is None and stays and self.scroll_target_y == self.scroll_y:
            # The keys that are pressed most: nothing but these two lines can read differently.
            self._settle((before - window.top, self._cursor_index - window.top))
            return
        if top is not None:
            self._look_from(top)
        self._look_from(self._window.top_showing(self._cursor_index))
        self._settle()

    def _put_cursor(self, index: int, vanished_id: str | None = None) -> None:
        row_id = self._source.row_at(index).id if len(self._source) else None
        self._cursor_index = index
        if row_id == self._cursor_id:
            return
        self._cursor_id = row_id
        if vanished_id is not None:
            self._tell(CursorMoved(self, row_id, vanished_id))
        elif self.is_mounted and not self._has_moved:
            # The cursor is painted first: who walks through a list looks there. The screen is told in between.
            self._has_moved = True
            self.call_after_refresh(self.call_after_refresh, self._tell_moved)

    def _tell_moved(self) -> None:
        self._has_moved = False
        self.post_message(CursorMoved(self, self._cursor_id))

    def _look_from(self, top: int) -> None:
        if self._window.height:
            self.scroll_to(y=top, animate=False, force=True)

    def _wanted_virtual_size(self) -> Size:
        return Size(1, len(self._source) + HEADER_HEIGHT)

    def _follow_length(self) -> None:
        """A new length is a new layout of the whole screen only if the scroll bar comes or goes."""
        wanted = self._wanted_virtual_size()
        if wanted == self.virtual_size:
            return
        needs_bar = wanted.height > self.container_size.height
        if needs_bar != self.show_vertical_scrollbar or self.styles.auto_dimensions:
            self.virtual_size = wanted
            return
        self.set_reactive(VirtualTable.virtual_size, wanted)
        if needs_bar:
            self.vertical_scrollbar.window_virtual_size = wanted.height

    def _set_marks(self, marks: frozenset[str]) -> None:
        if marks != self._marks:
            self._marks = marks
            self._tell(MarksChanged(self, marks))
            self._paint_changes()

    def _settle(self, lines: Sequence[int] | None = None) -> None:
        window = self._paint_changes(lines)
        if not self._near_end_told and window.is_near_end(self._cursor_index):
            self._near_end_told = True
            self._tell(NearEnd(self))

    def _tell(self, message: TableMessage) -> None:
        """Before it is on the screen a table has nobody to tell; mounting tells where the cursor is."""
        if self.is_mounted:
            self.post_message(message)

    # Lines

    def _columns_at(self, width: int) -> tuple[PlacedColumn, ...]:
        if width != self._placed_width:
            self._placed_width = width
            self._placed = place_columns(self._columns, width)
        return self._placed

    def _lines(self, window: Window, screen_lines: Sequence[int]) -> Iterator[tuple[int, Line]]:
        """What the given lines below the header show now."""
        if not window.length:
            notice = centred(self.empty, self.scrollable_size.width, window.height)
            yield from ((y, Line(notice=notice[y] if y < len(notice) else None)) for y in screen_lines)
            return
        for y in screen_lines:
            yield y, self._row_line(window.top + y) if window.top + y < window.length else Line()

    def _row_line(self, index: int) -> Line:
        row = self._source.row_at(index)
        return Line(row, cursor=index == self._cursor_index, marked=row.id in self._marks)

    def _paint_changes(self, lines: Sequence[int] | None = None) -> Window:
        """Asks for what differs from what is painted, of these lines or of all in the window."""
        width, _ = size = self.scrollable_size
        window = self._window_in(size)
        if not window.height:
            return window
        now = self._lines(window, range(window.height) if lines is None else lines)
        regions = self._painted.regions_to_paint(now, self._columns_at(width), width)
        # Without a region Textual would paint the whole table.
        if regions:
            self.refresh(*regions)
        return window

"""Who may ask whom, as a matrix: any number of agents, the cost of one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
from agent_console.tui.widgets.matrix_lines import corner_text, name_text, upright_name
from agent_console.tui.widgets.matrix_shape import Along, shape_of
from agent_console.tui.widgets.virtual_table_lines import centred, fit, paint


@dataclass(frozen=True, slots=True)
class Side:
    """The names along one side, by id."""

    ids: tuple[str, ...] = ()
    names: tuple[Content, ...] = ()
    places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, named: dict[str, Content]) -> Side:
        return cls(tuple(named), tuple(named.values()), {key: place for place, key in enumerate(named)})

    def __len__(self) -> int:
        return len(self.ids)


Pair = tuple[str, str]
LineKey = tuple[object, ...]


@dataclass(frozen=True)
class Grid:
    """A snapshot: it never changes once it is shown. `cell` is only asked for what is on the screen.

    The cell gets its pair and whether there is room for a word beside its glyph.
    """

    rows: Side = field(default_factory=Side)
    columns: Side = field(default_factory=Side)
    cell: Callable[[Pair, bool], Content] = lambda pair, wordy: system_text("")


class PolicyMatrix(Widget, can_focus=True, inherit_bindings=False):
    """Cells under a frozen header and beside frozen names, with a cursor that belongs to a pair of ids.

    Whatever is shown next, the cursor stays on its pair. Only lines that read differently are painted again.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"policy-matrix--line", "policy-matrix--stale"}
    DEFAULT_CSS = """
    PolicyMatrix > .policy-matrix--stale { text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "row(-1)", "Up", show=False, id="matrix.up"),
        Binding("down,j", "row(1)", "Down", show=False, id="matrix.down"),
        Binding("left", "column(-1)", "Left", show=False, id="matrix.left"),
        Binding("right", "column(1)", "Right", show=False, id="matrix.right"),
        Binding("pageup", "page_rows(-1)", "Page up", show=False, id="matrix.page_up"),
        Binding("pagedown", "page_rows(1)", "Page down", show=False, id="matrix.page_down"),
        Binding("less_than_sign", "page_columns(-1)", "Page left", show=False, id="matrix.page_left"),
        Binding("greater_than_sign", "page_columns(1)", "Page right", show=False, id="matrix.page_right"),
        Binding("g", "row(-1000000)", "First row", show=False, id="matrix.first_row"),
        Binding("G", "row(1000000)", "Last row", show=False, id="matrix.last_row"),
        Binding("home", "column(-1000000)", "First column", show=False, id="matrix.first_column"),
        Binding("end", "column(1000000)", "Last column", show=False, id="matrix.last_column"),
        Binding("enter", "choose", "Edit", show=False, id="matrix.choose"),
    ]

    stale: reactive[bool] = reactive(False)
    """The cells are the last known ones, not the current ones: all of them are dimmed."""

    class Moved(Message):
        """The cursor stands on another pair, or the window shows another part."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, PolicyMatrix.Moved)

    class Chosen(Message):
        """Enter was pressed on this pair."""

        def __init__(self, pair: Pair) -> None:
            super().__init__()
            self.pair = pair

    def __init__(self, *, empty: Content) -> None:
        super().__init__()
        self._grid = Grid()
        self._shown = 0
        self._down = Along()
        self._across = Along()
        self._empty: Content = empty
        self._shape = shape_of(0, 0, (), ())
        self._made: dict[int, tuple[LineKey, Content]] = {}
        self._painted: dict[int, tuple[LineKey, Content]] = {}
        self._upright: dict[tuple[str, bool], tuple[Content, ...]] = {}
        self._fitted: dict[str, Content] = {}

    # What the pane reads

    @property
    def pair(self) -> Pair | None:
        """What the cursor stands on."""
        rows, columns = self._grid.rows, self._grid.columns
        if not len(rows) or not len(columns):
            return None
        return rows.ids[self._down.cursor], columns.ids[self._across.cursor]

    @property
    def rows_seen(self) -> range:
        return self._down.seen(len(self._grid.rows), self._shape.rows)

    @property
    def columns_seen(self) -> range:
        return self._across.seen(len(self._grid.columns), self._shape.columns)

    @property
    def room(self) -> tuple[range, range]:
        """What would be on the screen if there were any number of rows and columns."""
        rows, columns = max(1, self._shape.rows), max(1, self._shape.columns)
        return (
            range(self._down.first, self._down.first + rows),
            range(self._across.first, self._across.first + columns),
        )

    # What the pane says

    def show(self, grid: Grid, empty: Content | None = None) -> None:
        """Replaces everything; the cursor follows its pair, or goes to the nearest that is still there."""
        before, old = self._now(), self._grid
        self._grid = grid
        self._shown += 1
        if empty is not None:
            self._empty = empty
        self._reshape()
        self._down = self._down.followed(old.rows.ids, grid.rows.places, self._shape.rows)
        self._across = self._across.followed(old.columns.ids, grid.columns.places, self._shape.columns)
        self._settle(before)

    def move_to(self, pair: Pair) -> bool:
        """Puts the cursor on a pair; False when the matrix does not hold it."""
        row, column = self._grid.rows.places.get(pair[0]), self._grid.columns.places.get(pair[1])
        if row is None or column is None:
            return False
        self._go(
            self._down.moved(row, len(self._grid.rows), self._shape.rows),
            self._across.moved(column, len(self._grid.columns), self._shape.columns),
        )
        return True

    # Keys and mouse

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "choose" or self.pair is not None

    def action_row(self, by: int) -> None:
        moved = self._down.moved(self._down.cursor + by, len(self._grid.rows), self._shape.rows)
        self._go(moved, self._across)

    def action_column(self, by: int) -> None:
        moved = self._across.moved(self._across.cursor + by, len(self._grid.columns), self._shape.columns)
        self._go(self._down, moved)

    def action_page_rows(self, direction: int) -> None:
        self._go(self._down.paged(direction, len(self._grid.rows), self._shape.rows), self._across)

    def action_page_columns(self, direction: int) -> None:
        self._go(self._down, self._across.paged(direction, len(self._grid.columns), self._shape.columns))

    def action_choose(self) -> None:
        if (pair := self.pair) is not None:
            self.post_message(self.Chosen(pair))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row, column = self._shape.row_at(offset.y), self._shape.column_at(offset.x)
        if row is None or column is None:
            return
        place = (self._down.first + row, self._across.first + column)
        if place[0] < len(self._grid.rows) and place[1] < len(self._grid.columns):
            self.move_to((self._grid.rows.ids[place[0]], self._grid.columns.ids[place[1]]))

    # Textual calls these

    def on_resize(self) -> None:
        before = self._now()
        self._reshape()
        self._down = self._down.moved(self._down.cursor, len(self._grid.rows), self._shape.rows)
        self._across = self._across.moved(self._across.cursor, len(self._grid.columns), self._shape.columns)
        self._settle(before)

    def watch_stale(self) -> None:
        self._painted.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._line(y)
        self._painted[y] = self._key(y), line
        classes = ("policy-matrix--line", "policy-matrix--stale") if self.stale else ("policy-matrix--line",)
        return paint(line, self.get_visual_style(*classes), self.size.width)

    # What is painted

    def _now(self) -> tuple[Pair | None, range, range]:
        return self.pair, self.rows_seen, self.columns_seen

    def _reshape(self) -> None:
        rows, columns = self._grid.rows.names, self._grid.columns.names
        lengths = [name.cell_length for name in rows], [name.cell_length for name in columns]
        shape = shape_of(self.size.width, self.size.height, *lengths)
        if shape != self._shape:
            self._shape = shape
            self._upright.clear()
            self._fitted.clear()

    def _go(self, down: Along, across: Along) -> None:
        before = self._now()
        self._down, self._across = down, across
        self._settle(before)

    def _settle(self, before: tuple[Pair | None, range, range]) -> None:
        changed = [Region(0, y, self.size.width, 1) for y in range(self.size.height) if self._reads_otherwise(y)]
        # Without a region Textual would paint all of it.
        if changed:
            self.refresh(*changed)
        if self._now() != before and self.is_mounted:
            self.post_message(self.Moved())

    def _reads_otherwise(self, y: int) -> bool:
        """A line with the same key reads the same; with another it may, and then it is not painted either."""
        if y not in self._painted:
            return True
        key, line = self._painted[y]
        return key != self._key(y) and not self._line(y).is_same(line)

    def _key(self, y: int) -> LineKey:
        """What the line is made of."""
        around = (self._shown, self._shape, self.columns_seen, self.size.height)
        if y < self._shape.header:
            return *around, self._across.cursor
        index = self._down.first + y - self._shape.header
        return *around, index, self._across.cursor if index == self._down.cursor else None

    def _line(self, y: int) -> Content:
        """Made once for whoever looks whether it differs, and for the painter."""
        key = self._key(y)
        known = self._made.get(y)
        if known is None or known[0] != key:
            known = self._made[y] = key, self._made_anew(y)
        return known[1]

    def _made_anew(self, y: int) -> Content:
        if not len(self._grid.rows) or not len(self._grid.columns):
            notice = centred(self._empty, self.size.width, self.size.height)
            return (notice[y] if y < len(notice) else None) or system_text("")
        if y < self._shape.header:
            columns = (self._column_name(place, y) for place in self.columns_seen)
            return corner_text(y, self._shape) + system_text("").join(columns)
        index = self._down.first + y - self._shape.header
        return self._row_at(index) if index < len(self._grid.rows) else system_text("")

    def _column_name(self, place: int, y: int) -> Content:
        """Each name is taken apart once, however often its column is painted."""
        name, here = self._grid.columns.names[place], place == self._across.cursor
        known = self._upright.get((name.plain, here))
        if known is None:
            known = self._upright[name.plain, here] = upright_name(name, here, self._shape)
        return known[y]

    def _row_at(self, index: int) -> Content:
        here, row = index == self._down.cursor, self._grid.rows.ids[index]
        cells = (
            self._cell((row, self._grid.columns.ids[place]), here and place == self._across.cursor)
            for place in self.columns_seen
        )
        return name_text(self._grid.rows.names[index], here, self._shape) + system_text("").join(cells)

    def _cell(self, pair: Pair, here: bool) -> Content:
        shown = self._grid.cell(pair, self._shape.is_flat)
        known = self._fitted.get(shown.plain)
        if known is None:
            known = self._fitted[shown.plain] = fit(shown, self._shape.column - 1)
        # The blank between two columns stays out of the cursor, which is as wide as what it stands on.
        return (known.stylize("reverse") if here else known).pad_right(1)

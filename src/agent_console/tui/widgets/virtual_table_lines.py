"""How one line of a table reads, and which of its cells differ from what the screen shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as SegmentStyle
from textual.content import Content
from textual.strip import Strip
from textual.style import Style

from agent_console.tui.widgets.rows import Row
from agent_console.tui.widgets.virtual_table_columns import GAP, GUTTER, PlacedColumn

CURSOR_GLYPH = "▸"
MARK_GLYPH = "●"

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that break a line, or whose width no two terminals agree on."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line below the header shows: a row, a line of the empty state, or nothing."""

    row: Row | None = None
    notice: Content | None = None
    cursor: bool = False
    marked: bool = False

    def is_of(self, other: Line) -> bool:
        """Whether both are of the same thing of the fleet."""
        return self.row is not None and other.row is not None and self.row.id == other.row.id

    def looks_like(self, other: Line) -> bool:
        """Everything but the cells. Content's own == ignores style, so it's never used on a line."""
        return (
            (self.row is None) == (other.row is None)
            and (self.cursor, self.marked) == (other.cursor, other.marked)
            and _same(self.notice, other.notice)
        )


def changed_spans(
    old: Line | None, new: Line, columns: Sequence[PlacedColumn], width: int
) -> Iterator[tuple[int, int]]:
    """The parts of a line to paint again, as (x, width)."""
    if old is None or not old.looks_like(new):
        yield 0, width
        return
    if old.row is None or new.row is None or old.row is new.row:
        return
    for placed in columns:
        if not old.row.cell(placed.index).is_same(new.row.cell(placed.index)):
            yield placed.x, placed.width


def component_classes(line: Line, stale: bool) -> tuple[str, ...]:
    """The styles of a line, the strongest last."""
    if line.row is None:
        return ("virtual-table--empty",)
    states = {
        "virtual-table--row": True,
        "virtual-table--marked": line.marked,
        "virtual-table--cursor": line.cursor,
        "virtual-table--stale": stale,
    }
    return tuple(name for name, applies in states.items() if applies)


def row_text(line: Line, row: Row, columns: Sequence[PlacedColumn]) -> Content:
    glyphs = (CURSOR_GLYPH if line.cursor else " ") + (MARK_GLYPH if line.marked else " ")
    cells = (fit(row.cell(placed.index), placed.width, placed.column.align) for placed in columns)
    return _join(glyphs, cells)


def header_text(columns: Sequence[PlacedColumn]) -> Content:
    titles = (fit(Content(placed.column.title), placed.width, placed.column.align) for placed in columns)
    return _join("", titles)


def _join(glyphs: str, cells: Iterable[Content]) -> Content:
    return Content(glyphs.ljust(GUTTER)) + Content(" " * GAP).join(cells)


def fit(cell: Content, width: int, align: Literal["left", "right"] = "left") -> Content:
    """The cell in exactly `width` terminal cells, cut with an ellipsis where it's too long."""
    shown = _one_line(cell).truncate(width, ellipsis=True)
    blank = width - cell_len(shown.plain)
    return shown.pad_left(blank) if align == "right" else shown.pad_right(blank)


def _one_line(cell: Content) -> Content:
    if cell.plain.isprintable():
        return cell
    # One character stands for one, so that spans keep their place.
    shown = "".join(map(_stand_in, cell.plain))
    return Content(shown, list(cell.spans), strip_control_codes=False)


def _stand_in(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"


def centred(notice: Content, width: int, height: int) -> tuple[Content | None, ...]:
    """The empty state in the middle of `height` lines; None is a blank line."""
    if width <= 0 or height <= 0:
        return ()
    wrapped = [line.truncate(width, ellipsis=True) for line in notice.wrap(width)][:height]
    above = (height - len(wrapped)) // 2
    below = height - len(wrapped) - above
    shown = [line.pad_left((width - line.cell_length) // 2) for line in wrapped]
    return (*[None] * above, *shown, *[None] * below)


def paint(text: Content, style: Style, width: int) -> Strip:
    segments = [Segment(part, _plain_style(part_style)) for part, part_style in text.render(style, end="")]
    return Strip(segments).adjust_cell_length(width, style.rich_style)


def _plain_style(style: Style) -> SegmentStyle:
    """Colours and attributes only: a link or a click action in a cell is dead on arrival."""
    shown = style.rich_style
    return shown.clear_meta_and_links() if shown.link or shown.meta else shown


def _same(one: Content | None, other: Content | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.is_same(other)

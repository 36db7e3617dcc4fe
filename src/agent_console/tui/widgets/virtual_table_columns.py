"""Where the columns of a table stand, worked out from its width alone and never from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

GUTTER = 3
"""Cells at the left edge: the cursor's glyph, the mark's glyph, a space."""

GAP = 1
"""Blank cells between two columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a pane asks for it.

    A width of None takes the remaining room. On a terminal that is too narrow the columns with the
    highest `drop` vanish first; a column with `drop` 0 stays and is narrowed down to `min_width`, or below it
    to `narrow_to`.
    """

    key: str
    title: str
    width: int | None
    min_width: int = 4
    align: Literal["left", "right"] = "left"
    drop: int = 0
    narrow_to: int | None = None

    @property
    def floor(self) -> int:
        return self.min_width if self.narrow_to is None else self.narrow_to

    @property
    def needs(self) -> int:
        return self.min_width if self.width is None else self.width


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column on the screen: `index` finds its cell in a row, `x` and `width` are in cells."""

    column: Column
    index: int
    x: int
    width: int


def place_columns(columns: Sequence[Column], width: int) -> tuple[PlacedColumn, ...]:
    kept = _keep_what_fits(columns, width)
    widths = _share_room([columns[index] for index in kept], width)
    placed: list[PlacedColumn] = []
    x = GUTTER
    for index, column_width in zip(kept, widths, strict=True):
        placed.append(PlacedColumn(columns[index], index, x, column_width))
        x += column_width + GAP
    return tuple(placed)


def _room(width: int, count: int) -> int:
    return width - GUTTER - GAP * max(0, count - 1)


def _keep_what_fits(columns: Sequence[Column], width: int) -> list[int]:
    kept = list(range(len(columns)))
    while sum(columns[index].needs for index in kept) > _room(width, len(kept)):
        droppable = [index for index in kept if columns[index].drop > 0]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda index: (columns[index].drop, index)))
    return kept


def _share_room(columns: Sequence[Column], width: int) -> list[int]:
    widths = [column.needs for column in columns]
    spare = _room(width, len(columns)) - sum(widths)
    if spare < 0:
        return _narrow(columns, widths, -spare)
    growing = [place for place, column in enumerate(columns) if column.width is None]
    for turn, place in enumerate(growing):
        share, extra = divmod(spare, len(growing))
        widths[place] += share + (1 if turn < extra else 0)
    return widths


def _narrow(columns: Sequence[Column], widths: list[int], missing: int) -> list[int]:
    """Takes cells from the widest column first, so that no column is starved for another."""
    narrowed = list(widths)
    for _ in range(missing):
        willing = [place for place, column in enumerate(columns) if narrowed[place] > column.floor]
        if not willing:
            break
        narrowed[max(willing, key=lambda place: (narrowed[place], place))] -= 1
    return narrowed

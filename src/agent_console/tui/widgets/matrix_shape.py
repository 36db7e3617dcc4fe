"""Where the parts of a matrix stand, as plain arithmetic on its size and the length of its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GUTTER = 2
"""Cells at the left edge: the cursor's glyph and a space."""
NARROW_CELLS = 2
WORDY_CELLS = 10
"""So many cells a column needs before a word fits beside the glyph."""
NAME_MOST = 28
FLAT_NAME_MOST = 16
TALLEST = 14


@dataclass(frozen=True, slots=True)
class Shape:
    """A frozen column of names at the left, a frozen header on top, and room for so many cells beside them.

    Where all columns fit with their names written flat, they are; else the names stand upright.
    """

    names: int
    column: int
    header: int
    rows: int
    columns: int

    @property
    def is_flat(self) -> bool:
        return self.header == 1

    @property
    def left(self) -> int:
        """Where the first cell begins."""
        return GUTTER + self.names + 1

    def column_at(self, x: int) -> int | None:
        place = (x - self.left) // self.column
        return place if 0 <= place < self.columns else None

    def row_at(self, y: int) -> int | None:
        place = y - self.header
        return place if 0 <= place < self.rows else None


def shape_of(width: int, height: int, names: Sequence[int], columns: Sequence[int]) -> Shape:
    """`names` and `columns` are how long the names of the rows and of the columns are."""
    named = min(max(names, default=0), max(8, width // 4), NAME_MOST)
    room = max(0, width - GUTTER - named - 1)
    longest = max(columns, default=1)
    if len(columns) * WORDY_CELLS <= room:
        flat = max(WORDY_CELLS, min(longest + 1, FLAT_NAME_MOST, room // max(1, len(columns))))
        return Shape(named, flat, 1, max(0, height - 1), room // flat)
    # Names are cut no shorter than the rows need the room.
    tall = max(2, min(longest, max(height * 2 // 5, height - len(names)), TALLEST))
    return Shape(named, NARROW_CELLS, tall, max(0, height - tall), room // NARROW_CELLS)


@dataclass(frozen=True, slots=True)
class Along:
    """The cursor and the window along one side of the matrix."""

    cursor: int = 0
    first: int = 0

    def moved(self, cursor: int, length: int, room: int) -> Along:
        """The cursor on another place, in sight after the shortest scroll."""
        wanted = max(0, min(cursor, length - 1))
        furthest = max(0, length - max(1, room))
        first = min(max(self.first, wanted - max(1, room) + 1), wanted)
        return Along(wanted, max(0, min(first, max(furthest, wanted - max(1, room) + 1))))

    def paged(self, direction: int, length: int, room: int) -> Along:
        page = direction * max(1, room)
        return Along(self.cursor, max(0, self.first + page)).moved(self.cursor + page, length, room)

    def followed(self, before: Sequence[str], after: Mapping[str, int], room: int) -> Along:
        """Where the cursor belongs among other names: on its own, or the nearest that is still there.

        The name it stands on stays on its place of the screen.
        """
        length = len(after)
        index = min(self.cursor, max(0, length - 1))
        for distance in range(len(before)):
            found = [
                after[before[place]]
                for place in (self.cursor + distance, self.cursor - distance)
                if 0 <= place < len(before) and before[place] in after
            ]
            if found:
                index = found[0]
                break
        return Along(index, max(0, index - (self.cursor - self.first))).moved(index, length, room)

    def seen(self, length: int, room: int) -> range:
        return range(self.first, min(length, self.first + room))

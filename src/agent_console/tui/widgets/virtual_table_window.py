"""The part of a list that is on the screen, as plain arithmetic on row numbers."""

from __future__ import annotations

from dataclasses import dataclass

from agent_console.tui.widgets.rows import RowSource


@dataclass(frozen=True, slots=True)
class Window:
    """`height` rows from row `top` on, of a list of `length` rows."""

    top: int
    height: int
    length: int

    def row_nearest(self, index: int) -> int:
        return max(0, min(index, self.length - 1))

    def is_inside(self, index: int) -> bool:
        return self.top <= index < self.top + self.height

    def row_inside(self, index: int) -> int:
        """The row on the screen that is nearest to `index`."""
        last = self.top + max(1, self.height) - 1
        return self.row_nearest(min(max(index, self.top), last))

    def top_showing(self, index: int) -> int:
        """The first row of the window after the shortest scroll that brings `index` on the screen."""
        return min(max(self.top, index - self.height + 1), index)

    def is_near_end(self, cursor: int) -> bool:
        """Is the last row at most a page from the cursor or from the last row on the screen?"""
        if not self.height or not self.length:
            return False
        furthest = max(cursor, self.top + self.height - 1)
        return furthest >= self.length - 1 - self.height


def nearest_survivor(before: RowSource, cursor: int, after: RowSource, reach: int) -> int:
    """Where a cursor on row `cursor` of one source belongs in the next.

    On the same row; or on the nearest neighbour that is still there, the one below before the one
    above, as far as `reach`; or on whatever now has its number.
    """
    candidates = [cursor]
    for distance in range(1, reach + 1):
        candidates += [cursor + distance, cursor - distance]
    for candidate in candidates:
        if 0 <= candidate < len(before):
            index = after.index_of(before.row_at(candidate).id)
            if index is not None:
                return index
    return max(0, min(cursor, len(after) - 1))

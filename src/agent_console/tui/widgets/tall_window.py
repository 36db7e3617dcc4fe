"""The part of a list of items of different heights that is on the screen, as plain arithmetic.

Nothing here walks further than a screen: heights are asked for only of items on it and next to it.
"""

from collections.abc import Callable
from dataclasses import dataclass

HeightOf = Callable[[int], int]


@dataclass(frozen=True)
class TallWindow:
    """The first line on the screen is line `cut` of item `top`."""

    top: int = 0
    cut: int = 0


@dataclass(frozen=True)
class Heights:
    """`length` items, each as tall as `of` says, at least one line; `screen` lines to show them on."""

    length: int
    screen: int
    of: HeightOf

    def at_end(self) -> TallWindow:
        """The last item ends with the screen; fewer lines than the screen has begin at its top."""
        return self._ending_with(self.length - 1)

    def with_line(self, index: int, line: int) -> TallWindow:
        """Item `index` begins at this line of the screen (below 0 is above it), if there is enough around it."""
        window = self._unbounded(index, line)
        return self.at_end() if self._lines_from(window) < self.screen else window

    def scrolled(self, window: TallWindow, lines: int) -> TallWindow:
        return self.with_line(window.top, -window.cut - lines)

    def line_of(self, window: TallWindow, index: int) -> int:
        """The line of the screen where an item on it or next to it begins; it may be above the screen."""
        line = -window.cut
        for item in range(window.top, index):
            line += self.of(item)
        for item in range(index, window.top):
            line -= self.of(item)
        return line

    def item_at(self, window: TallWindow, line: int) -> int:
        """The item on this line of the screen, or the last one."""
        item, end = window.top, self.of(window.top) - window.cut
        while end <= line and item + 1 < self.length:
            item += 1
            end += self.of(item)
        return item

    def showing(self, window: TallWindow, index: int, *, its_end: bool = False) -> TallWindow:
        """The shortest scroll that brings an item whole on the screen; of one too tall for it a part.

        That part is the beginning, or `its_end` when one comes from below.
        """
        if index < window.top - self.screen:
            return self.with_line(index, 0)
        if index > window.top + self.screen:
            return self._ending_with(index)
        line, height = self.line_of(window, index), self.of(index)
        if line >= 0 and line + height <= self.screen:
            return window
        if height > self.screen:
            return self.with_line(index, self.screen - height if its_end else 0)
        return self.with_line(index, 0 if line < 0 else self.screen - height)

    def _unbounded(self, index: int, line: int) -> TallWindow:
        while line > 0 and index > 0:
            index -= 1
            line -= self.of(index)
        if line > 0:
            return TallWindow()
        cut = -line
        while index + 1 < self.length and cut >= self.of(index):
            cut -= self.of(index)
            index += 1
        return TallWindow(index, cut)

    def _ending_with(self, index: int) -> TallWindow:
        return self._unbounded(index, self.screen - self.of(index)) if self.length else TallWindow()

    def _lines_from(self, window: TallWindow) -> int:
        lines, item = -window.cut, window.top
        while lines < self.screen and item < self.length:
            lines += self.of(item)
            item += 1
        return lines

"""What the lines of a table showed when they were last painted, and which of their cells read differently now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.geometry import Region

from agent_console.tui.widgets.virtual_table_columns import PlacedColumn
from agent_console.tui.widgets.virtual_table_lines import Line, changed_spans


class PaintedLines:
    """By their place below the header, which is so many lines high."""

    def __init__(self, header_height: int) -> None:
        self._header_height = header_height
        self._lines: dict[int, Line] = {}

    def at(self, y: int) -> Line | None:
        return self._lines.get(y)

    def painted(self, y: int, line: Line) -> None:
        self._lines[y] = line

    def regions_to_paint(
        self, now: Iterable[tuple[int, Line]], columns: Sequence[PlacedColumn], width: int
    ) -> list[Region]:
        regions: list[Region] = []
        for y, line in now:
            painted = self._lines.get(y)
            spans = [*changed_spans(painted, line, columns, width)]
            regions += [Region(x, y + self._header_height, span, 1) for x, span in spans]
            if not spans and painted is not None and line.is_of(painted):
                # The same row, made anew with another second: whoever looks next sees at once that it is the same.
                self._lines[y] = line
        return regions

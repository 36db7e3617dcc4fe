"""A fact sheet: what is known of one thing, label by label.

Only labels stand at the left edge. A value that needs more lines goes on below itself, and what others wrote
at length stands behind a bar, so that no words of theirs can pass for a label of ours.
"""

from dataclasses import dataclass
from typing import Protocol

from textual.content import Content

from agent_console.tui.agent_text import system_text
from agent_console.tui.widgets.virtual_table_columns import GUTTER, Column, PlacedColumn, place_columns
from agent_console.tui.widgets.virtual_table_lines import fit

LABEL_CELLS = 15
LEAST_CELLS = 10
BAR = "│ "


class SheetPart(Protocol):
    def lines(self, width: int) -> list[Content]: ...


@dataclass(frozen=True)
class Fact:
    label: str
    value: Content

    def lines(self, width: int) -> list[Content]:
        label = system_text(self.label, "$foreground-muted")
        values = [line.pad_left(LABEL_CELLS) for line in _wrapped(self.value, width - LABEL_CELLS)]
        if label.cell_length >= LABEL_CELLS:
            return [label, *values]
        first = label.pad_right(LABEL_CELLS - label.cell_length) + values[0][LABEL_CELLS:]
        return [first, *values[1:]]


@dataclass(frozen=True)
class Heading:
    text: Content

    def lines(self, width: int) -> list[Content]:
        return _wrapped(self.text, width)


@dataclass(frozen=True)
class Quote:
    """Words of others, as many lines as they have."""

    text: Content

    def lines(self, width: int) -> list[Content]:
        bar = system_text(BAR, "$foreground-muted")
        return [bar + line for line in _wrapped(self.text, width - len(BAR))]


@dataclass(frozen=True)
class Remark:
    """A sentence where values would stand."""

    text: Content

    def lines(self, width: int) -> list[Content]:
        return [line.pad_left(GUTTER) for line in _wrapped(self.text, width - GUTTER)]


@dataclass(frozen=True)
class Listing:
    """A few rows in columns, none of them at the left edge, each on one line."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Content, ...], ...]

    def lines(self, width: int) -> list[Content]:
        placed = place_columns(self.columns, width)
        return [_row_line(row, placed) for row in self.rows]


def _row_line(row: tuple[Content, ...], placed: tuple[PlacedColumn, ...]) -> Content:
    line = system_text("")
    for place in placed:
        cell = fit(row[place.index], place.width, place.column.align)
        line = line.pad_right(place.x - line.cell_length) + cell
    return line


@dataclass(frozen=True)
class FactSheet:
    parts: tuple[SheetPart, ...] = ()

    def laid_out(self, width: int) -> Content:
        """The sheet in lines of at most this many cells, with a blank line before every further heading."""
        lines: list[Content] = []
        for part in self.parts:
            if isinstance(part, Heading) and lines:
                lines.append(system_text(""))
            lines += part.lines(width)
        return system_text("\n").join(lines)


def _wrapped(text: Content, width: int) -> list[Content]:
    return text.wrap(max(LEAST_CELLS, width)) or [system_text("")]

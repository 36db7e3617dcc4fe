"""A list of jobs on a screen, with an ear for what the table tells and an eye on what it repaints."""

from __future__ import annotations

from typing import Self

from textual import on
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip

from agent_console.tui.widgets.rows import ListSource, Row, RowSource
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_columns import Column
from agent_console.tui.widgets.virtual_table_messages import (
    CursorMoved,
    MarksChanged,
    NearEnd,
    RowChosen,
    TableMessage,
    TooManyToMark,
)

COLUMNS = (
    Column("id", "Job", 10),
    Column("type", "Type", None, min_width=8),
    Column("agent", "Agent", 12, drop=1),
    Column("age", "Age", 6, align="right", drop=2),
)


def job(number: int, type_name: str = "report", style: str = "") -> Row:
    cells = (f"job_{number}", type_name, "atlas", str(number))
    return Row(f"job_{number}", tuple(Content.styled(cell, style) for cell in cells))


def jobs(*numbers: int) -> ListSource:
    return ListSource(job(number) for number in numbers)


class CountedSource:
    """A list of any length that makes its rows when asked and remembers how often it was asked."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.asked = 0

    def __len__(self) -> int:
        return self._length

    def row_at(self, index: int) -> Row:
        self.asked += 1
        return job(index)

    def index_of(self, row_id: str) -> int | None:
        index = int(row_id.removeprefix("job_"))
        return index if index < self._length else None


class WatchedTable(VirtualTable):
    """The real table, keeping a record of what it asks to be repainted and of what was rendered."""

    def __init__(self, source: RowSource) -> None:
        self.repaints: list[tuple[Region, ...]] = []
        self.rendered: list[int] = []
        super().__init__(COLUMNS, source, empty=Content("No jobs match [/]"), id="jobs")

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        self.repaints.append(regions)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def render_line(self, y: int) -> Strip:
        self.rendered.append(y)
        return super().render_line(y)

    def forget_paints(self) -> None:
        self.repaints.clear()
        self.rendered.clear()

    def lines(self) -> list[str]:
        """What the screen shows, line by line, the header first."""
        return [strip.text.rstrip() for strip in self.strips()]

    def strips(self) -> list[Strip]:
        return self.render_lines(self.size.region)

    def screen_line_of(self, text: str) -> int:
        return next(y for y, line in enumerate(self.lines()) if text in line)


class JobList(App[None]):
    """One table, nothing else."""

    def __init__(self, source: RowSource) -> None:
        super().__init__()
        self.table = WatchedTable(source)
        self.heard: list[TableMessage] = []

    def compose(self) -> ComposeResult:
        yield self.table

    @on(CursorMoved)
    @on(RowChosen)
    @on(MarksChanged)
    @on(TooManyToMark)
    @on(NearEnd)
    def remember(self, message: TableMessage) -> None:
        self.heard.append(message)

    def moves(self) -> list[tuple[str | None, str | None]]:
        return [(told.row_id, told.vanished_id) for told in self.heard if isinstance(told, CursorMoved)]

    def count(self, kind: type[TableMessage]) -> int:
        return sum(isinstance(told, kind) for told in self.heard)

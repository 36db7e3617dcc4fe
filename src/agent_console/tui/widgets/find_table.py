"""A list in which one can go from one row with a word in it to the next."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_console.tui.widgets.rows import RowSource
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_messages import TableMessage

AT_ONCE = 200
"""So many rows are looked at before somebody else may have a turn."""


class MatchWanted(TableMessage, namespace="virtual_table"):
    """The next row with the word, or with -1 the one before."""

    def __init__(self, table: VirtualTable, step: int) -> None:
        super().__init__(table)
        self.step = step


class FindTable(VirtualTable):
    """The keys are there only while there is a word to find: they may mean something else around the table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "match(1)", "Next match", id="find.next"),
        Binding("N", "match(-1)", "Match before", show=False, id="find.previous"),
    ]

    word: str = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.word) if action == "match" else super().check_action(action, parameters)

    def find(self, word: str) -> None:
        self.word = word
        self.refresh_bindings()

    def action_match(self, step: int) -> None:
        self.post_message(MatchWanted(self, step))


async def match_in(rows: RowSource, word: str, start: int, step: int) -> int | None:
    """The first row from this one on that has the word in a cell or in its id."""
    wanted = word.casefold()
    index = start
    while 0 <= index < len(rows):
        row = rows.row_at(index)
        if wanted in row.id.casefold() or any(wanted in cell.plain.casefold() for cell in row.cells):
            return index
        index += step
        if index % AT_ONCE == 0:
            await asyncio.sleep(0)
    return None

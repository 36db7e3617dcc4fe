"""What a table tells the pane around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from agent_console.tui.widgets.virtual_table import VirtualTable


class TableMessage(Message, namespace="virtual_table"):
    """`on(message, "#jobs")` picks the table by its selector."""

    def __init__(self, table: VirtualTable) -> None:
        super().__init__()
        self.table = table

    @property
    def control(self) -> VirtualTable:
        return self.table


class CursorMoved(TableMessage, namespace="virtual_table"):
    """The cursor stands on another row, or on none.

    `vanished_id` is the row it stood on when that row is gone from the list: the operator did not
    move, the list did.
    """

    def __init__(self, table: VirtualTable, row_id: str | None, vanished_id: str | None = None) -> None:
        super().__init__(table)
        self.row_id = row_id
        self.vanished_id = vanished_id

    def can_replace(self, message: Message) -> bool:
        """A held-down key leaves only its last position to act on; a vanished row is always told."""
        superseded = isinstance(message, CursorMoved) and message.table is self.table
        return superseded and self.vanished_id is None


class RowChosen(TableMessage, namespace="virtual_table"):
    """Enter was pressed on this row."""

    def __init__(self, table: VirtualTable, row_id: str) -> None:
        super().__init__(table)
        self.row_id = row_id


class MarksChanged(TableMessage, namespace="virtual_table"):
    """Another set of rows is marked."""

    def __init__(self, table: VirtualTable, marks: frozenset[str]) -> None:
        super().__init__(table)
        self.marks = marks


class TooManyToMark(TableMessage, namespace="virtual_table"):
    """Mark-all was asked for on a list longer than `limit`, and nothing was marked."""

    def __init__(self, table: VirtualTable, count: int, limit: int) -> None:
        super().__init__(table)
        self.count = count
        self.limit = limit


class NearEnd(TableMessage, namespace="virtual_table"):
    """The last row is less than a page away. Told once for each source."""

"""What a table shows: rows with ids, and the sources they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from textual.content import Content


@dataclass(frozen=True, slots=True)
class Row:
    """One thing of the fleet on one line.

    Cells are Content and never str, so that no text reaches the screen without having passed the
    gate that makes agent-written words safe.
    """

    id: str
    cells: tuple[Content, ...]

    def cell(self, index: int) -> Content:
        """The cell of a column; a row that is shorter than the header is blank there."""
        return self.cells[index] if index < len(self.cells) else Content.empty()


class RowSource(Protocol):
    """A snapshot of rows in their order.

    A source never changes once it is shown: a changed list is a new source. Ids are distinct. All
    three calls must be cheap at any length, because they are made for every line that is painted.
    """

    def __len__(self) -> int: ...

    def row_at(self, index: int) -> Row: ...

    def index_of(self, row_id: str) -> int | None: ...


class ListSource:
    """Rows that are already in memory.

    Pages fetched one after the other can hold a row twice when it moved in between; it is shown once,
    where it came first, so that an id always means one line.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        distinct: dict[str, Row] = {}
        for row in rows:
            distinct.setdefault(row.id, row)
        self._rows = tuple(distinct.values())
        self._indexes = {row_id: index for index, row_id in enumerate(distinct)}

    def __len__(self) -> int:
        return len(self._rows)

    def row_at(self, index: int) -> Row:
        return self._rows[index]

    def index_of(self, row_id: str) -> int | None:
        return self._indexes.get(row_id)

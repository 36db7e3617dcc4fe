"""The part of a list that has been fetched so far, kept whole while parts of it are fetched again.

The order of a list is the order of its ids, which never change; so a page that is fetched again replaces
exactly the stretch it covers, whatever appeared in it or left it meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from textual.content import Content

from agent_console.domain.ids import Id
from agent_console.domain.records import Page, Record
from agent_console.tui.widgets.rows import Row

ListedRecord = TypeVar("ListedRecord", bound=Record)


def id_of(record: Record) -> Id:
    found = getattr(record, "id", None)
    if not isinstance(found, Id):
        raise TypeError(f"{type(record).__name__} has no id")
    return found


@dataclass(frozen=True)
class Loaded(Generic[ListedRecord]):
    """Records in the order of the list; `complete` when nothing follows the last one."""

    newest_first: bool
    records: tuple[ListedRecord, ...] = ()
    complete: bool = False
    indexes: dict[str, int] = field(default_factory=dict)

    def _with(self, records: tuple[ListedRecord, ...], complete: bool) -> "Loaded[ListedRecord]":
        indexes = {str(id_of(record)): index for index, record in enumerate(records)}
        return Loaded(self.newest_first, records, complete, indexes)

    def _follows(self, record: ListedRecord, other: ListedRecord) -> bool:
        mine, theirs = id_of(record), id_of(other)
        return mine < theirs if self.newest_first else mine > theirs

    def merged(self, after: int, page: Page[ListedRecord]) -> "Loaded[ListedRecord]":
        """Put a page in that was fetched to follow the first `after` records."""
        before = self.records[:after]
        if page.next is None:
            return self._with(before + page.items, True)
        last = page.items[-1]
        rest = tuple(record for record in self.records[after:] if self._follows(record, last))
        overlaps = after > 0 or not self.records or len(rest) < len(self.records)
        if not overlaps and rest:
            # So much is new that the page does not reach what was known: between them may be a gap.
            return self._with(page.items, False)
        return self._with(before + page.items + rest, self.complete and bool(rest))

    def extended(self, page: Page[ListedRecord]) -> "Loaded[ListedRecord]":
        return self.merged(len(self.records), page)


Cells = Callable[[ListedRecord], tuple[Content, ...]]


class LoadedRows(Generic[ListedRecord]):
    """Rows made of loaded records only when they are painted, so that a tick costs what is on the screen."""

    def __init__(
        self, loaded: Loaded[ListedRecord], row_of: Callable[[ListedRecord], tuple[Content, ...]]
    ) -> None:
        self._loaded = loaded
        self._row_of = row_of

    def __len__(self) -> int:
        return len(self._loaded.records)

    def row_at(self, index: int) -> Row:
        record = self._loaded.records[index]
        return Row(str(id_of(record)), self._row_of(record))

    def index_of(self, row_id: str) -> int | None:
        return self._loaded.indexes.get(row_id)

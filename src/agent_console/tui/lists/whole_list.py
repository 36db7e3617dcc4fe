"""A list that comes in one piece and in an order of its own, such as what a team can set."""

from dataclasses import dataclass
from typing import Generic

from agent_console.domain.records import Page
from agent_console.tui.lists.loaded import ListedRecord


@dataclass(frozen=True)
class WholeList(Generic[ListedRecord]):
    """Whatever comes replaces all of it. `key` is the field by which a record is known."""

    key: str
    records: tuple[ListedRecord, ...] = ()
    complete: bool = False

    def row_id(self, record: ListedRecord) -> str:
        return str(getattr(record, self.key))

    def index_of(self, row_id: str) -> int | None:
        places = (place for place, record in enumerate(self.records) if self.row_id(record) == row_id)
        return next(places, None)

    def last_before(self, index: int) -> str | None:
        """There are no pages, so none follows anything."""
        return None

    def merged(self, after: str | None, page: Page[ListedRecord]) -> "WholeList[ListedRecord]":
        return WholeList(self.key, page.items, page.next is None)

"""A list in the order of its seq, the newest first, by which its pages are asked for too."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

from agent_console.domain.ids import Id
from agent_console.domain.records import Page, Record
from agent_console.tui.lists.loaded import id_of


class HasSeq(Protocol):
    @property
    def id(self) -> Id: ...

    @property
    def seq(self) -> int: ...


Numbered = TypeVar("Numbered", bound=HasSeq)


@dataclass(frozen=True)
class SeqList(Generic[Numbered]):
    """Everything from the top down to `going_on`, where the next page begins; none is left out between.

    A page may hold fewer records than were asked for, even none, and still go on.
    """

    records: tuple[Numbered, ...] = ()
    complete: bool = False
    going_on: str | None = None

    def row_id(self, record: Record) -> str:
        return str(id_of(record))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(record.id): place for place, record in enumerate(self.records)}

    def index_of(self, row_id: str) -> int | None:
        return self._places.get(row_id)

    def last_before(self, index: int) -> str | None:
        if index >= len(self.records):
            return self.going_on
        return str(self.records[index - 1].seq) if index > 0 else None

    def merged(self, after: str | None, page: Page[Any]) -> Self:
        """A page tells of everything between `after` and its own `next`, also of who committed late."""
        known_to = self._known_to
        if after is not None and (known_to is None or int(after) < known_to):
            # The list was begun anew while the page was on its way: what lies between is not known.
            return self
        above = () if after is None else self.records[: self._count_down_to(int(after))]
        if page.next is None:
            return replace(self, records=(*above, *page.items), complete=True, going_on=None)
        end = int(page.next)
        if after is None and self.records and end > self.records[0].seq:
            # All of the page is new and it does not reach what was known: there may be more in between.
            return replace(self, records=page.items, complete=False, going_on=page.next)
        records = (*above, *page.items, *self.records[self._count_down_to(end) :])
        if known_to is not None and known_to < end:
            return replace(self, records=records)
        return replace(self, records=records, complete=False, going_on=page.next)

    @property
    def _known_to(self) -> int | None:
        """Everything from here on up is known; None before the first page."""
        if self.complete:
            return 0
        return None if self.going_on is None else int(self.going_on)

    def _count_down_to(self, seq: int) -> int:
        """How many records stand above this seq or on it."""
        return bisect_left(self.records, -seq + 1, key=lambda record: -record.seq)

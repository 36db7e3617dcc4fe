"""The part of a list that has been fetched so far, kept whole while parts of it are fetched again.

The order of a list is the order of its ids, which never change; so a page that is fetched again replaces
exactly the stretch it covers, whatever appeared in it or left it meanwhile, and whichever other page arrived
while it was on its way. A page of a filtered list may cover much and hold little, even nothing.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from textual.content import Content

from agent_console.domain.errors import WrongId
from agent_console.domain.ids import KINDS, Id
from agent_console.domain.records import Page, Record
from agent_console.tui.widgets.rows import Row

ListedRecord = TypeVar("ListedRecord", bound=Record)


def id_of(record: Record) -> Id:
    found = getattr(record, "id", None)
    if not isinstance(found, Id):
        raise TypeError(f"{type(record).__name__} has no id")
    return found


class ListSoFar(Protocol[ListedRecord]):
    """What a pane holds of its list, whichever way the list is asked for."""

    @property
    def records(self) -> tuple[ListedRecord, ...]: ...

    @property
    def complete(self) -> bool: ...

    def row_id(self, record: ListedRecord) -> str: ...

    def index_of(self, row_id: str) -> int | None: ...

    def last_before(self, index: int) -> str | None: ...

    def merged(self, after: str | None, page: Page[ListedRecord]) -> "ListSoFar[ListedRecord]": ...


@dataclass(frozen=True)
class Loaded(Generic[ListedRecord]):
    """Records in the order of the list; `complete` when nothing follows the last one.

    `going_on` is where the next page begins, which may be far behind the last record.
    """

    newest_first: bool
    records: tuple[ListedRecord, ...] = ()
    complete: bool = False
    going_on: str | None = None

    def row_id(self, record: ListedRecord) -> str:
        return str(id_of(record))

    def index_of(self, row_id: str) -> int | None:
        if not self.records:
            return None
        wanted = _parsed(row_id)
        place = self._count_up_to(wanted)
        return place - 1 if place and id_of(self.records[place - 1]) == wanted else None

    def last_before(self, index: int) -> str | None:
        """The id that a page starting at this row has to follow."""
        if index >= len(self.records) and self.going_on is not None:
            return self.going_on
        place = min(index, len(self.records))
        return str(id_of(self.records[place - 1])) if place > 0 else None

    def merged(self, after: str | None, page: Page[ListedRecord]) -> "Loaded[ListedRecord]":
        """Put in a page that was asked for with `after`, where None is the top of the list."""
        if after is not None and not self._reaches(after):
            # The list was begun anew while the page was on its way: what lies between is not known.
            return self
        before = self.records[: self._count_up_to(_parsed(after))] if after is not None else ()
        if page.next is None:
            return self._with(before + page.items, None)
        if (end := _end_of(page)) is None:
            return self._with(before, page.next)
        covered = self._count_up_to(end)
        if after is None and covered == 0 and (_has_more(page, end) or not self._knows_beyond(end)):
            # All of the page is new and it does not reach what was known: there may be more in between.
            return self._with(page.items, page.next)
        rest = self.records[covered:]
        records = before + page.items + rest
        if rest or (self._knows_beyond(end) and not _has_more(page, end)):
            return Loaded(self.newest_first, records, self.complete, self.going_on)
        return self._with(records, page.next)

    def _knows_beyond(self, place: Id) -> bool:
        if self.complete:
            return True
        return self.going_on is not None and self._rank(_parsed(self.going_on)) > self._rank(place)

    def _reaches(self, wanted: str) -> bool:
        place = self._rank(_parsed(wanted))
        if self.going_on is not None and place <= self._rank(_parsed(self.going_on)):
            return True
        return bool(self.records) and place <= self._rank(id_of(self.records[-1]))

    def _rank(self, wanted: Id) -> int:
        return -wanted.int if self.newest_first else wanted.int

    def _count_up_to(self, wanted: Id) -> int:
        """How many records stand before this id or on it, found without walking through the list."""
        return bisect_right(self.records, self._rank(wanted), key=lambda record: self._rank(id_of(record)))

    def _with(self, records: tuple[ListedRecord, ...], going_on: str | None) -> "Loaded[ListedRecord]":
        return Loaded(self.newest_first, records, going_on is None, going_on)


def _parsed(row_id: str) -> Id:
    kind = KINDS.get(row_id.rpartition("_")[0].lower())
    if kind is None:
        raise WrongId(f"{row_id[:60]!a} is no id.")
    return kind.parse(row_id)


def _end_of(page: Page[ListedRecord]) -> Id | None:
    """Up to where the page tells of everything."""
    try:
        return _parsed(page.next or "")
    except WrongId:
        return id_of(page.items[-1]) if page.items else None


def _has_more(page: Page[ListedRecord], end: Id) -> bool:
    """Whether the page was full, so that something follows its last record."""
    return bool(page.items) and id_of(page.items[-1]) == end


Cells = Callable[[ListedRecord], tuple[Content, ...]]


class LoadedRows(Generic[ListedRecord]):
    """Rows made of loaded records only when they are painted, so that a tick costs what is on the screen.

    Each is made once: a key that moves the cursor asks for all that are in sight, and they are as they were.
    """

    def __init__(self, loaded: ListSoFar[ListedRecord], cells: Cells[ListedRecord]) -> None:
        self._loaded = loaded
        self._cells = cells
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return len(self._loaded.records)

    def row_at(self, index: int) -> Row:
        if (row := self._made.get(index)) is None:
            record = self._loaded.records[index]
            row = self._made[index] = Row(self._loaded.row_id(record), self._cells(record))
        return row

    def index_of(self, row_id: str) -> int | None:
        return self._loaded.index_of(row_id)

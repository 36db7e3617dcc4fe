"""The acts that were fetched so far: newest first, in the order of their seq, by which pages are asked for."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property

from agent_console.domain.audit_trail import AuditRow
from agent_console.domain.records import Page, Record
from agent_console.tui.loaded import id_of


@dataclass(frozen=True)
class ActsSoFar:
    """Everything from the top down to `going_on`, where the next page begins; none is left out between.

    A page may hold fewer acts than were asked for, even none, and still go on. While the list is paused,
    `pinned` is the newest act that is shown: what came after it is not asked for.
    """

    records: tuple[AuditRow, ...] = ()
    complete: bool = False
    going_on: str | None = None
    pinned: int | None = None

    def row_id(self, record: Record) -> str:
        return str(id_of(record))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(act.id): place for place, act in enumerate(self.records)}

    def index_of(self, row_id: str) -> int | None:
        return self._places.get(row_id)

    def last_before(self, index: int) -> str | None:
        if index <= 0:
            return None if self.pinned is None else str(self.pinned + 1)
        if index >= len(self.records):
            return self.going_on
        return str(self.records[index - 1].seq)

    def merged(self, after: str | None, page: Page[Record]) -> "ActsSoFar":
        """A page tells of everything between `after` and its own `next`, also of who committed late."""
        if after is None and self.pinned is not None:
            # It was asked for before the list was pinned.
            return self._merged_below_pin(self.pinned, page)
        known_to = self._known_to
        if after is not None and (known_to is None or int(after) < known_to):
            # The list was begun anew while the page was on its way: what lies between is not known.
            return self
        above = () if after is None else self.records[: self._count_above(int(after))]
        acts = tuple(act for act in page.items if isinstance(act, AuditRow))
        if page.next is None:
            return replace(self, records=(*above, *acts), complete=True, going_on=None)
        end = int(page.next)
        if after is None and self.records and end > self.records[0].seq:
            # All of the page is new and it does not reach what was known: there may be more in between.
            return replace(self, records=acts, complete=False, going_on=page.next)
        records = (*above, *acts, *self.records[self._count_above(end) :])
        if known_to is not None and known_to < end:
            return replace(self, records=records)
        return replace(self, records=records, complete=False, going_on=page.next)

    def _merged_below_pin(self, pinned: int, page: Page[Record]) -> "ActsSoFar":
        if page.next is not None and int(page.next) > pinned:
            return self
        acts = tuple(act for act in page.items if isinstance(act, AuditRow) and act.seq <= pinned)
        return self.merged(str(pinned + 1), Page[Record](items=acts, next=page.next))

    def pinned_here(self) -> "ActsSoFar":
        return replace(self, pinned=self.records[0].seq) if self.records else self

    def unpinned(self) -> "ActsSoFar":
        return replace(self, pinned=None)

    def cut_to(self, most: int) -> "ActsSoFar":
        """Without what lies too far below to be kept: it is asked for again by whoever scrolls there."""
        if len(self.records) <= most:
            return self
        kept = self.records[:most]
        return replace(self, records=kept, complete=False, going_on=str(kept[-1].seq))

    @property
    def last_sealed(self) -> int:
        """The furthest place in the chain that any of them has."""
        return max((act.position for act in self.records if act.position is not None), default=0)

    @property
    def _known_to(self) -> int | None:
        """Everything from here on up is known; None before the first page."""
        if self.complete:
            return 0
        return None if self.going_on is None else int(self.going_on)

    def _count_above(self, seq: int) -> int:
        """How many acts stand above this seq or on it."""
        return bisect_left(self.records, -seq + 1, key=lambda act: -act.seq)

"""The runs that have been fetched so far: in the order of their seq, by which their pages are asked for too."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from agent_console.domain.records import Page
from agent_console.domain.runs import Run


@dataclass(frozen=True)
class RunsSoFar:
    """Newest first. A page may hold fewer runs than were asked for, even none, and still go on at `going_on`."""

    records: tuple[Run, ...] = ()
    complete: bool = False
    going_on: str | None = None

    def row_id(self, record: Run) -> str:
        return str(record.id)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(run.id): place for place, run in enumerate(self.records)}

    def index_of(self, row_id: str) -> int | None:
        return self._places.get(row_id)

    def last_before(self, index: int) -> str | None:
        if index >= len(self.records):
            return self.going_on
        return str(self.records[index - 1].seq) if index > 0 else None

    def merged(self, after: str | None, page: Page[Run]) -> "RunsSoFar":
        """A page tells of everything between `after` and its own `next`."""
        known_to = self._known_to
        if after is not None and (known_to is None or int(after) < known_to):
            # The list was begun anew while the page was on its way: what lies between is not known.
            return self
        above = self.records[: self._count_down_to(int(after))] if after is not None else ()
        if page.next is None:
            return RunsSoFar((*above, *page.items), complete=True)
        if after is None and self.records and int(page.next) > self.records[0].seq:
            # All of the page is new and it does not reach what was known: there may be more in between.
            return RunsSoFar(page.items, going_on=page.next)
        below = self.records[self._count_down_to(int(page.next)) :]
        records = (*above, *page.items, *below)
        if below or (known_to is not None and known_to < int(page.next)):
            return RunsSoFar(records, self.complete, self.going_on)
        return RunsSoFar(records, going_on=page.next)

    @property
    def _known_to(self) -> int | None:
        """Everything from here on up is known; None before the first page."""
        if self.complete:
            return 0
        return None if self.going_on is None else int(self.going_on)

    def _count_down_to(self, seq: int) -> int:
        """How many runs stand above this seq or on it."""
        return bisect_left(self.records, -seq + 1, key=lambda run: -run.seq)

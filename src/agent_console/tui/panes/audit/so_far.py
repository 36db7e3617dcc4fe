"""The acts that were fetched so far, and from which of them on the list stands still."""

from dataclasses import dataclass, replace
from typing import Any

from agent_console.domain.audit_trail import AuditRow
from agent_console.domain.records import Page
from agent_console.tui.lists.seq_list import SeqList


@dataclass(frozen=True)
class ActsSoFar(SeqList[AuditRow]):
    """While the list is paused, `pinned` is the newest act that is shown: what came after it is not asked for."""

    pinned: int | None = None

    def last_before(self, index: int) -> str | None:
        if index <= 0:
            return None if self.pinned is None else str(self.pinned + 1)
        return super().last_before(index)

    def merged(self, after: str | None, page: Page[Any]) -> "ActsSoFar":
        if after is not None or self.pinned is None:
            return super().merged(after, page)
        # It was asked for before the list was pinned.
        if page.next is not None and int(page.next) > self.pinned:
            return self
        acts = tuple(act for act in page.items if act.seq <= self.pinned)
        return super().merged(str(self.pinned + 1), page.model_copy(update={"items": acts}))

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

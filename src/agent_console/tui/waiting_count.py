"""How many requests wait for the operator: counted as far as a header can say it, and rung for when one is new."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

COUNTED = 100
"""So many are asked for; more are told as more."""
BELL_SECONDS = 1.0


@dataclass(frozen=True)
class WaitingCount:
    """`more` when there are others that were not counted."""

    count: int
    more: bool = False

    def __str__(self) -> str:
        if self.more and self.count >= COUNTED:
            return f"> {COUNTED - 1}"
        return f"≥ {self.count}" if self.more else str(self.count)

    @property
    def words(self) -> str:
        return f"{self} {'approval' if self.count == 1 and not self.more else 'approvals'}"


@dataclass
class Doorbell:
    """Rings for what was not there before, at most once a second; what was there at the start is no news."""

    clock: Callable[[], datetime]
    silent: bool = False
    _known: frozenset[str] | None = field(default=None, init=False)
    _rung_at: datetime | None = field(default=None, init=False)

    def is_news(self, waiting: Iterable[str]) -> bool:
        """Whether somebody new waits; asked once for every list that comes."""
        before, self._known = self._known, frozenset(waiting)
        return before is not None and not self._known <= before

    def may_ring(self) -> bool:
        now = self.clock()
        if self.silent:
            return False
        if self._rung_at is not None and abs((now - self._rung_at).total_seconds()) < BELL_SECONDS:
            return False
        self._rung_at = now
        return True

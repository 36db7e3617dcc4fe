"""How many requests wait for the operator: counted as far as a header can say it, and rung for when one is new."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic

COUNTED = 100
"""So many are asked for; more are told as more."""
BELL_SECONDS = 1.0
AWAY_SECONDS = 60.0
"""Who has pressed no key for so long is taken to look elsewhere where the terminal says nothing of its focus."""


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
class Presence:
    """Whether somebody looks at the terminal. Not every one tells: within tmux it has to be switched on."""

    tells_focus: bool = False
    _pressed_at: float = field(default_factory=monotonic, init=False)

    def pressed(self) -> None:
        self._pressed_at = monotonic()

    def looks(self, *, focused: bool) -> bool:
        return focused and (self.tells_focus or monotonic() - self._pressed_at < AWAY_SECONDS)


@dataclass
class Doorbell:
    """Rings for what was not there before, at most once a second; what was there at the start is no news."""

    clock: Callable[[], datetime]
    silent: bool = False
    _known: frozenset[str] | None = field(default=None, init=False)
    _newest: str = field(default="", init=False)
    _knew_all: bool = field(default=False, init=False)
    _rung_at: datetime | None = field(default=None, init=False)

    def is_news(self, waiting: Iterable[str], *, more: bool = False) -> bool:
        """Whether somebody new waits; asked once for every list that comes. Where there were `more` than are
        known, one of those may only have come up: then news is what was made later than all that are known."""
        before, self._known = self._known, frozenset(waiting)
        newest, self._newest = self._newest, max(self._known | {self._newest})
        knew_all, self._knew_all = self._knew_all, not more
        new = self._known - (before or set())
        return before is not None and any(knew_all or one > newest for one in new)

    def may_ring(self) -> bool:
        now = self.clock()
        if self.silent:
            return False
        if self._rung_at is not None and abs((now - self._rung_at).total_seconds()) < BELL_SECONDS:
            return False
        self._rung_at = now
        return True

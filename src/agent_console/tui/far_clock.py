"""What time it is where the data is: people's machines are wrong by hours, and jump."""

from datetime import datetime, timedelta
from time import monotonic

from agent_console.tui.setup import system_clock

# The way there and back takes time; what is no more than that is no news.
STEADY_SECONDS = 0.5


class FarClock:
    """This machine's own clock until the database has told its time; from then on that time, carried on by what
    passes here. Whoever sets the clock of this machine meanwhile changes nothing.
    """

    def __init__(self) -> None:
        self._heard: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        if self._heard is None:
            return system_clock()
        at, since = self._heard
        return at + timedelta(seconds=monotonic() - since)

    def hear(self, at: datetime, asked: float, answered: float) -> None:
        """`at` was the time between two moments of `monotonic`."""
        middle = (asked + answered) / 2
        if self._heard is None or self._is_off(at, middle, (answered - asked) / 2):
            self._heard = (at, middle)

    def _is_off(self, at: datetime, middle: float, uncertain: float) -> bool:
        assert self._heard is not None
        known, since = self._heard
        return abs((at - known).total_seconds() - (middle - since)) > uncertain + STEADY_SECONDS

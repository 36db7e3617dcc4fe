"""How the queue went in the last minutes, as far as somebody looked: what nobody saw is a gap, never a guess."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from agent_console.domain.queue_stats import QueueStats

SPAN = timedelta(minutes=10)
SAMPLE_SECONDS = 5.0
GAP = timedelta(seconds=3 * SAMPLE_SECONDS)
"""Whoever looked less often than this does not know what was in between."""
MOST = 1_000


@dataclass(frozen=True)
class Sample:
    """One look, at a time of the console's own clock; the time between two looks is the database's."""

    at: datetime
    stats: QueueStats
    lag_seconds: float | None = None

    def kept(self) -> "Sample":
        """Without what no course is drawn of: a queue may have many types and lanes, and a history many looks."""
        return replace(self, stats=self.stats.model_copy(update={"by_status": (), "by_type": (), "by_lane": ()}))


@dataclass(frozen=True)
class Stretch:
    """From one look to the next: the value that held between them."""

    begins: datetime
    ends: datetime
    value: float


@dataclass(frozen=True)
class History:
    """Bounded in time and in number."""

    samples: tuple[Sample, ...] = ()

    def with_sample(self, sample: Sample) -> "History":
        kept = tuple(one for one in self.samples if sample.at - one.at <= SPAN + GAP)
        return replace(self, samples=(*kept, sample.kept())[-MOST:])

    def rates(self, name: str) -> tuple[Stretch, ...]:
        """How much of a total came in a minute."""
        found = (
            (begun, ended, ended.stats.per_minute_since(begun.stats).get(name)) for begun, ended in self._pairs()
        )
        # A total that shrinks is that of another database: nobody knows what lies between.
        return tuple(
            Stretch(begun.at, ended.at, rate) for begun, ended, rate in found if rate is not None and rate >= 0
        )

    def claim_waits(self) -> tuple[Stretch, ...]:
        """How long what was claimed had waited, on average; where nothing was claimed there is nothing to tell."""
        waits = []
        for begun, ended in self._pairs():
            before, after = begun.stats.totals, ended.stats.totals
            claims, seconds = after.claims - before.claims, after.claim_wait_seconds - before.claim_wait_seconds
            if claims > 0 and seconds >= 0:
                waits.append(Stretch(begun.at, ended.at, seconds / claims))
        return tuple(waits)

    def oldest_waits(self) -> tuple[Stretch, ...]:
        return tuple(
            Stretch(begun.at, ended.at, ended.stats.oldest_queued_seconds or 0.0) for begun, ended in self._pairs()
        )

    def lags(self) -> tuple[Stretch, ...]:
        return tuple(
            Stretch(begun.at, ended.at, max(0.0, ended.lag_seconds))
            for begun, ended in self._pairs()
            if ended.lag_seconds is not None
        )

    def _pairs(self) -> Iterator[tuple[Sample, Sample]]:
        return ((a, b) for a, b in pairwise(self.samples) if timedelta(0) < b.at - a.at <= GAP)

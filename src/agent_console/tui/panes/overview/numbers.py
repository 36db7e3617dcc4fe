"""How the fleet goes, in numbers: each with its share of the whole or its last minutes, and where it leads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from textual.content import Content

from agent_console.domain.agents import PoolStatus
from agent_console.domain.queue_stats import QueueStats
from agent_console.domain.spans import span
from agent_console.domain.states import JobStatus
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.history import SPAN, History, Stretch
from agent_console.tui.looks import JOB_STATUS
from agent_console.tui.panes.jobs.lists import STATES
from agent_console.tui.panes.overview.ways import to_jobs, to_pane
from agent_console.tui.wanted import Wanted
from agent_console.tui.widgets.rows import Row
from agent_console.tui.widgets.sparkline import bar, bucketed, sparkline
from agent_console.tui.widgets.virtual_table_columns import Column

GRAPH = "graph"
COLUMNS = (
    Column("name", "Now", 13, min_width=13),
    Column("value", "", 9, align="right"),
    Column(GRAPH, f"Share · last {span(SPAN.total_seconds())}", None, min_width=20, narrow_to=10),
    Column("note", "", None, min_width=20, narrow_to=10),
)
TYPES_SHOWN = 10
NOT_YET, NOT_CLAIMED = "measured from now on", "nothing was claimed"
MINUTE = timedelta(minutes=1)


Drawn = Callable[[int], tuple[str, str]]
"""For so many cells: the graph, and what it means, which is its scale or its parts."""


@dataclass(frozen=True)
class Number:
    """One line, and where it leads."""

    id: str
    name: Content
    value: str
    drawn: Drawn
    way: Callable[[], Wanted]
    style: str = ""

    def row(self, cells: int) -> Row:
        graph, note = self.drawn(cells)
        shown = (system_text(graph, self.style), system_text(note, "$foreground-muted"))
        return Row(self.id, (self.name, system_text(self.value, "bold"), *shown))


def numbers(
    pool: PoolStatus, stats: QueueStats, lag: float | None, history: History, now: datetime
) -> tuple[Number, ...]:
    return (_pool(pool), *_depths(stats), *_course(stats, lag, history, now), *_further(stats))


def _share(value: float, whole: float, note: str) -> Drawn:
    return lambda cells: (bar(value, whole, cells), note)


def _pool(pool: PoolStatus) -> Number:
    whole = pool.online_count + pool.offline_count + pool.error_count
    troubles = {"error": pool.error_count, "offline": pool.offline_count}
    parts = ", ".join(
        [f"{pool.idle_count} idle", *(f"{count} {name}" for name, count in troubles.items() if count)]
    )
    return Number(
        "pool",
        system_text("online"),
        f"{pool.online_count} of {whole}",
        _share(pool.online_count, whole, parts),
        partial(to_pane, "agents"),
        "$text-error" if pool.error_count else "$text-success",
    )


def _counts(stats: QueueStats) -> dict[JobStatus, int]:
    return {one.status: one.jobs for one in stats.by_status}


def _depths(stats: QueueStats) -> Iterator[Number]:
    yield _group(stats, "waiting")
    yield _group(stats, "held")
    yield _group(stats, "failed", "$text-error")


def _group(stats: QueueStats, group: str, style: str = "") -> Number:
    counts = _counts(stats)
    parts = ", ".join(f"{counts[status]:,} {status.value.replace('_', ' ')}" for status in STATES[group])
    value, whole = sum(counts[status] for status in STATES[group]), sum(counts.values())
    drawn, way = _share(value, whole, parts), partial(to_jobs, group)
    return Number(group, system_text(group), f"{value:,}", drawn, way, style)


def _course(stats: QueueStats, lag: float | None, history: History, now: datetime) -> Iterator[Number]:
    per_minute: dict[str, tuple[str, str, str]] = {
        "completed": ("completions", "done", "$text-success"),
        "failures": ("failures", "failed", "$text-error"),
    }
    for name, (total, group, style) in per_minute.items():
        yield _measured(name, history.rates(total), now, _rate, partial(to_jobs, group), style)
    waiting = partial(to_jobs, "waiting")
    oldest = 0.0 if stats.oldest_queued_seconds is None else stats.oldest_queued_seconds
    yield _measured("oldest wait", history.oldest_waits(), now, _seconds, waiting, value=oldest)
    unclaimed = NOT_CLAIMED if history.oldest_waits() else NOT_YET
    yield _measured("claim wait", history.claim_waits(), now, _seconds, waiting, nothing=unclaimed)
    losses = history.rates("lease_losses")
    yield _measured("leases lost", losses, now, _rate, partial(to_pane, "agents"), "$text-warning")
    yield _measured("seal lag", history.lags(), now, _seconds, partial(to_pane, "audit"), value=lag)


def _rate(value: float) -> str:
    return f"{value:,.1f}/min" if value < 100 else f"{value:,.0f}/min"


def _seconds(value: float) -> str:
    return f"{value:.1f}s" if value < 60 else span(value)


def _measured(
    name: str,
    stretches: Sequence[Stretch],
    now: datetime,
    shown: Callable[[float], str],
    way: Callable[[], Wanted],
    style: str = "",
    value: float | None = None,
    nothing: str = NOT_YET,
) -> Number:
    """`value` is what it is now, where one look tells it; else it is the mean of the last minute. `nothing` is
    said where there is nothing to draw."""
    if value is None:
        (value,) = bucketed(stretches, now, MINUTE, 1)

    def drawn(cells: int) -> tuple[str, str]:
        means = bucketed(stretches, now, SPAN, cells)
        known = [mean for mean in means if mean is not None]
        if not known:
            return sparkline(means, 0.0), nothing
        # A letter is the mean of some seconds: what is now may be higher, and nobody believes a maximum below it.
        top = max(*known, value or 0.0)
        return sparkline(means, top), f"max {shown(top)}"

    said = "-" if value is None else shown(max(0.0, value))
    return Number(name.replace(" ", "-"), system_text(name), said, drawn, way, style)


def _further(stats: QueueStats) -> Iterator[Number]:
    """For whoever has the room, or scrolls: what has ended, every state, and the types with most waiting."""
    yield _group(stats, "done", "$foreground-muted")
    counts = _counts(stats)
    groups = {status: group for group, states in STATES.items() for status in states}
    for status, count in counts.items():
        glyph, style = JOB_STATUS[status.value]
        name = system_text(f"{glyph} {status.value}", style)
        drawn = _share(count, sum(counts.values()), "of all jobs")
        yield Number(f"status-{status.value}", name, f"{count:,}", drawn, partial(to_jobs, groups[status]))
    whole = sum(one.waiting for one in stats.by_type)
    for place, one in enumerate(one for one in stats.by_type[:TYPES_SHOWN] if one.waiting):
        name = agent_text(one.type or "any type", limit=60)
        drawn = _share(one.waiting, whole, f"of all waiting, {one.held:,} held")
        yield Number(f"type-{place}", name, f"{one.waiting:,}", drawn, partial(to_jobs, "waiting"))

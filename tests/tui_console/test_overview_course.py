"""How the course of the fleet is kept and drawn: true scales, and gaps where nobody looked."""

from datetime import datetime, timedelta

import pytest

from agent_console.domain.agents import PoolStatus
from agent_console.domain.queue_stats import QueueStats, QueueTotals, StatusCount
from agent_console.domain.states import JobStatus
from agent_console.tui.history import MOST, SPAN, History, Sample, Stretch
from agent_console.tui.panes.overview.numbers import numbers
from agent_console.tui.widgets.sparkline import LEVELS, bar, bucketed, sparkline
from tests.support.fleet import AT

MINUTE = timedelta(minutes=1)


def totals(completions: int = 0, claims: int = 0, waited: float = 0.0) -> QueueTotals:
    return QueueTotals(
        created=0, claims=claims, completions=completions, failures=0, retries=0, dead_letters=0, cancellations=0,
        lease_losses=0, claim_wait_seconds=waited,
    )  # fmt: skip


def stats(at: datetime, of: QueueTotals, oldest: float | None = None) -> QueueStats:
    return QueueStats(
        by_status=tuple(StatusCount(status=status, jobs=0) for status in JobStatus),
        by_type=(), types_capped=False, by_lane=(), lanes_capped=False, oldest_queued_at=None,
        oldest_queued_seconds=oldest, totals=of, average_claim_wait_seconds=None, oldest_transaction_seconds=None,
        hidden_transactions=0, oldest_snapshot_transactions=0, warnings=(), at=at,
    )  # fmt: skip


def looked(*looks: tuple[float, QueueTotals], lag: float | None = None) -> History:
    """Looks so many seconds after AT."""
    history = History()
    for seconds, of in looks:
        at = AT + timedelta(seconds=seconds)
        history = history.with_sample(Sample(at, stats(at, of, oldest=seconds), lag))
    return history


def test_a_rate_is_what_came_between_two_looks() -> None:
    history = looked((0, totals(10)), (5, totals(12)), (10, totals(12)))

    assert [stretch.value for stretch in history.rates("completions")] == [24.0, 0.0]
    assert [stretch.value for stretch in history.oldest_waits()] == [5.0, 10.0]
    assert [stretch.value for stretch in looked((0, totals()), (5, totals()), lag=0.5).lags()] == [0.5]


def test_what_nobody_saw_is_a_gap_and_so_is_another_database() -> None:
    lost = looked((0, totals(10)), (5, totals(11)), (125, totals(400)), (130, totals(401)))
    restored = looked((0, totals(10)), (5, totals(3)), (10, totals(4)))

    assert [(stretch.begins - AT).seconds for stretch in lost.rates("completions")] == [0, 125]
    assert [stretch.value for stretch in restored.rates("completions")] == [12.0]


def test_a_claim_wait_is_the_mean_of_what_was_claimed() -> None:
    history = looked((0, totals(0, 2, 1.0)), (5, totals(0, 6, 9.0)), (10, totals(0, 6, 9.0)))

    assert [stretch.value for stretch in history.claim_waits()] == [2.0]


def test_the_history_is_bounded_in_time_and_in_number() -> None:
    long, often = History(), History()
    for number in range(400):
        at = AT + timedelta(seconds=5 * number)
        long = long.with_sample(Sample(at, stats(at, totals())))
    for number in range(MOST + 50):
        at = AT + timedelta(milliseconds=number)
        often = often.with_sample(Sample(at, stats(at, totals())))

    assert long.samples[-1].at - long.samples[0].at <= SPAN + MINUTE
    assert len(often.samples) == MOST
    assert not often.samples[0].stats.by_status, "of a look is kept what the course is drawn of"


def test_a_bucket_is_the_mean_of_what_is_known_of_it() -> None:
    now = AT + 4 * MINUTE
    known = (
        Stretch(AT, AT + MINUTE, 6.0),
        Stretch(AT + 2 * MINUTE, AT + 2.5 * MINUTE, 10.0),
        Stretch(AT + 2.5 * MINUTE, AT + 3.5 * MINUTE, 2.0),
    )

    assert bucketed(known, now, 4 * MINUTE, 4) == (6.0, None, 6.0, 2.0)
    assert bucketed(known, now, 4 * MINUTE, 2)[1] == pytest.approx(14 / 3)
    assert bucketed(known, now + 10 * MINUTE, 4 * MINUTE, 2) == (None, None)


def test_a_line_goes_from_nothing_to_its_highest_and_shows_gaps() -> None:
    assert sparkline([0.0, 1.0, 4.0, 8.0, None], 8.0) == "▁▂▅█·"
    assert sparkline([0.0, 0.0], 0.0) == "▁▁"
    assert sparkline([0.001, 1000.0], 1000.0) == "▂█", "a little is more than nothing"
    assert sparkline([1.0, 2.0], 8.0) == "▂▃", "the top may be something that no letter shows"
    assert sparkline([], 0.0) == ""


def test_a_bar_is_a_part_of_a_whole() -> None:
    assert bar(1, 2, 4) == "━━┈┈"
    assert bar(3, 8, 4) == "━╸┈┈"
    assert bar(1, 1_000_000, 4) == "╸┈┈┈"
    assert (bar(0, 10, 4), bar(3, 0, 4), bar(20, 10, 4)) == ("┈┈┈┈", "┈┈┈┈", "━━━━")


def test_no_maximum_lies_below_what_is_now() -> None:
    """The oldest job waits longer with every look; a letter is the mean of many looks."""
    history = looked(*((seconds, totals()) for seconds in range(0, 60, 5)))
    now = AT + timedelta(seconds=58)
    pool = PoolStatus(online_count=1, idle_count=1, running_jobs_count=0, offline_count=0, error_count=0, at=now)

    shown = numbers(pool, stats(now, totals(), oldest=58.0), None, history, now)

    oldest = next(number for number in shown if number.id == "oldest-wait")
    graph, note = oldest.drawn(5)
    assert (oldest.value, note) == ("58.0s", "max 58.0s")
    assert graph[-1] == LEVELS[round(30 / 58 * 7)], "the letters are drawn to the scale that is told"


def test_the_pool_names_troubles_only_where_there_are_some() -> None:
    """What is nought took the room of what is not, and was cut off at 80 columns."""
    calm = PoolStatus(online_count=12, idle_count=3, running_jobs_count=9, offline_count=0, error_count=0, at=AT)
    bad = PoolStatus(online_count=9, idle_count=3, running_jobs_count=6, offline_count=2, error_count=1, at=AT)

    notes = [numbers(pool, stats(AT, totals()), None, looked(), AT)[0].drawn(5)[1] for pool in (calm, bad)]

    assert notes == ["3 idle", "3 idle, 1 error, 2 offline"]

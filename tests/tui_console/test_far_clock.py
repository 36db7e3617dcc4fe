"""The console's clock is the database's."""

from datetime import UTC, datetime, timedelta
from time import monotonic

from agent_console.tui.far_clock import FarClock
from agent_console.tui.setup import system_clock

FAR = timedelta(hours=30)
CLOSE = timedelta(seconds=10)


def test_until_it_is_told_it_is_this_machine_s_clock() -> None:
    assert abs(FarClock()() - system_clock()) < CLOSE


def test_what_the_database_told_counts_and_goes_on() -> None:
    clock = FarClock()

    clock.hear(system_clock() - FAR, monotonic(), monotonic())

    first, second = clock(), clock()
    assert abs(first - (system_clock() - FAR)) < CLOSE
    assert first < second


def test_a_slow_answer_moves_nothing_and_a_wrong_clock_is_put_right() -> None:
    clock = FarClock()
    told = datetime(2030, 1, 1, tzinfo=UTC)
    clock.hear(told, 100.0, 100.0)

    clock.hear(told + timedelta(seconds=3), 100.0, 110.0)
    after_a_slow_answer = clock._heard
    clock.hear(told + timedelta(seconds=60), 120.0, 120.2)

    assert after_a_slow_answer == (told, 100.0)
    assert clock._heard == (told + timedelta(seconds=60), 120.1)

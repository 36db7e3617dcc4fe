"""The first signal asks, the second doesn't."""

import os
import signal
from queue import Queue

import pytest

from agent_console.tui.terminal.signal_watch import ENDING, ending_on_signals

NEVER = 600.0
PATIENCE = 60.0


class Told:
    """What the watcher asked for, in order."""

    def __init__(self, *, can_end_soon: bool) -> None:
        self.words: Queue[str] = Queue()
        self._can_end_soon = can_end_soon

    def end_soon(self) -> bool:
        self.words.put("soon")
        return self._can_end_soon

    def end_now(self, number: int) -> None:
        self.words.put(f"now {number}")

    def next(self) -> str:
        return self.words.get(timeout=PATIENCE)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_a_second_signal_does_not_wait() -> None:
    told = Told(can_end_soon=True)

    with ending_on_signals(told.end_soon, told.end_now, NEVER):
        send(signal.SIGTERM)
        first = told.next()
        send(signal.SIGINT)
        second = told.next()

    assert (first, second) == ("soon", f"now {signal.SIGTERM}")


def test_nothing_to_end_gently_ends_at_once() -> None:
    told = Told(can_end_soon=False)

    with ending_on_signals(told.end_soon, told.end_now, NEVER):
        send(signal.SIGHUP)
        words = [told.next(), told.next()]

    assert words == ["soon", f"now {signal.SIGHUP}"]


def test_ending_in_time_is_all_that_was_asked() -> None:
    told = Told(can_end_soon=True)

    with ending_on_signals(told.end_soon, told.end_now, NEVER) as received:
        send(signal.SIGTERM)
        told.next()

    assert received == [signal.SIGTERM]
    assert told.words.empty()


def test_other_signals_are_not_taken_for_an_end() -> None:
    told = Told(can_end_soon=True)
    before = signal.signal(signal.SIGWINCH, lambda _number, _frame: None)

    with ending_on_signals(told.end_soon, told.end_now, NEVER) as received:
        send(signal.SIGWINCH)
        send(signal.SIGTERM)
        told.next()

    signal.signal(signal.SIGWINCH, before)
    assert received == [signal.SIGTERM]


@pytest.mark.parametrize("ignored", [signal.SIGHUP], ids=["nohup"])
def test_what_was_ignored_stays_ignored(ignored: signal.Signals) -> None:
    told = Told(can_end_soon=True)
    before = signal.signal(ignored, signal.SIG_IGN)

    with ending_on_signals(told.end_soon, told.end_now, NEVER) as received:
        send(ignored)
        send(signal.SIGTERM)
        told.next()

    signal.signal(ignored, before)
    assert received == [signal.SIGTERM]


def test_the_handlers_are_put_back() -> None:
    told = Told(can_end_soon=True)
    before = [signal.getsignal(number) for number in ENDING]

    with ending_on_signals(told.end_soon, told.end_now, NEVER):
        during = [signal.getsignal(number) for number in ENDING]

    assert [signal.getsignal(number) for number in ENDING] == before
    assert during != before

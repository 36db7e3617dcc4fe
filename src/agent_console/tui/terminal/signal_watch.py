"""Hears the signals that end a program, even while its main thread is stuck.

Python runs signal handlers in the main thread, between two of its steps: one that waits for a lock, or for a
terminal that has hung up, may never get there. The interpreter also writes each signal's number to a pipe at
once; here a thread of its own reads that.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@contextmanager
def ending_on_signals(
    end_soon: Callable[[], bool], end_now: Callable[[int], None], moment: float
) -> Iterator[list[int]]:
    """Within, the first signal is put in the list that is given, and calls `end_soon`.

    `end_now` gets its number when `end_soon` says no, when a second signal comes, or when the moment
    (in seconds) has passed. Signals the caller ignores stay ignored: that is how nohup works.
    """
    received: list[int] = []
    heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    heard, told = os.pipe()
    os.set_blocking(told, False)

    def watch() -> None:
        number = _next_signal(heard, heeded, patience=None)
        if number is None:
            return
        received.append(number)
        try:
            ended = end_soon() and _next_signal(heard, heeded, patience=moment) is None
        except TimeoutError:
            ended = False
        if not ended:
            end_now(number)

    watcher = Thread(target=watch, name="signal-watch", daemon=True)
    watcher.start()
    before = {number: signal.signal(number, _leave_it_to_the_watcher) for number in heeded}
    wakeup_before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    try:
        yield received
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        watcher.join()
        os.close(heard)


def _next_signal(heard: int, heeded: list[signal.Signals], patience: float | None) -> int | None:
    """The next signal that is heeded, None when nobody watches any more; TimeoutError when none comes."""
    deadline = None if patience is None else monotonic() + patience
    while True:
        left = None if deadline is None else max(0.0, deadline - monotonic())
        if not select.select([heard], [], [], left)[0]:
            raise TimeoutError
        number = os.read(heard, 1)
        if not number:
            return None
        if number[0] in heeded:
            return number[0]


def _leave_it_to_the_watcher(_number: int, _frame: FrameType | None) -> None:
    """Having a handler is what makes the interpreter write the number."""

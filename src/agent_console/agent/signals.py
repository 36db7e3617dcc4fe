"""The signals that ask a program to end, as an agent heeds them."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# A closed terminal must not leave the children of an agent behind, so its signal counts too.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Leave(Protocol):
    def __call__(self, *, at_once: bool = False) -> None: ...


@contextmanager
def heeding(leave: Leave) -> Iterator[None]:
    """The first signal asks to leave in order, every other one to leave at once. What is ignored stays ignored."""
    loop = asyncio.get_running_loop()
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    asked = False

    def heard() -> None:
        nonlocal asked
        leave(at_once=asked)
        asked = True

    for number in heeded:
        loop.add_signal_handler(number, heard)
    try:
        yield
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)

"""Ends the programs of an agent that was killed with 9 and could end nothing itself any more.

A process of its own, which is told the groups of the programs on its input: when that closes and some were not let
go, whoever started them is gone, and they are asked to end. It reads nothing but the standard library, so that it
is there at once and costs next to nothing.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

LOOK_SECONDS = 0.05
STARTED, ENDED = "+", "-"


class ProgramWatch:
    """Begins with the first program. `grace` is how many seconds lie between asking a program and killing it."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()

    def __enter__(self) -> "ProgramWatch":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._process is not None:
            self._process.communicate()

    @contextmanager
    def over(self, group: int) -> Iterator[None]:
        """While the block lasts, the group does not outlive this process."""
        self._groups.add(group)
        try:
            self._tell(f"{STARTED}{group}")
            yield
        finally:
            self._groups.discard(group)
            # What became of this program is no matter of the others; who comes next begins the watch again.
            with suppress(OSError):
                self._tell(f"{ENDED}{group}")

    def _tell(self, word: str) -> None:
        """A watch that begins, the first or one after somebody ended the last, has to know all that is known."""
        if self._process is not None:
            try:
                self._say(self._process, [word])
            except BrokenPipeError:
                self.__exit__()
                self._process = None
        if self._process is None and self._groups:
            self._process = self._begun()
            with suppress(BrokenPipeError):
                self._say(self._process, (f"{STARTED}{group}" for group in self._groups))

    def _say(self, process: "subprocess.Popen[str]", words: Iterable[str]) -> None:
        if process.stdin is not None:
            process.stdin.write("".join(f"{word}\n" for word in words))
            process.stdin.flush()

    def _begun(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603 - our own program, the arguments are a list
            [sys.executable, "-I", "-S", __file__, str(self._grace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )


def _watch(words: Iterable[str], grace: float) -> None:
    left: set[int] = set()
    for word in words:
        group = int(word[1:])
        if word[0] == STARTED:
            left.add(group)
        else:
            left.discard(group)
    _signal(left, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while left and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        left = {group for group in left if _lives(group)}
    _signal(left, signal.SIGKILL)


def _signal(groups: Iterable[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    # Whoever ends a whole service asks its watch too, which has to see the end of the others first.
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _watch(sys.stdin, float(sys.argv[1]))

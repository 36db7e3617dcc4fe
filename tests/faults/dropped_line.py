"""A person's console in a real terminal: its line drops, it is killed, or its clock is wrong."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.world import ASKED, ASKER, OPERATORS, World
from tests.support.warm_python import Session
from tests.support.warm_start import WarmProgram, warm_python

PATIENCE = 60.0
AGAIN_SECONDS = 1.0
SIZE = (24, 100)
APPROVED = "select count(*) from approvals where state = 'approved'"
ESCAPES = re.compile(r"\x1b\[[0-9;?:<>=]*[a-zA-Z]|\x1b[()][0-9A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Line:
    """The person's end of it."""

    def __init__(self, world: World, clock: str | None = None) -> None:
        self._keeper, line = pty.openpty()
        fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        variables = world.variables | {
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "AGENT_CONSOLE_URL": world.url(0),
            "AGENT_CONSOLE_TOKEN": world.fleet.token(OPERATORS[0]),
        }
        self.program: WarmProgram | subprocess.Popen[bytes]
        if clock is None:
            self.program = warm_python().start(
                "agent_console",
                environment=variables,
                session=Session.TERMINAL,
                stdin=line,
                stdout=line,
                stderr=line,
            )
        else:
            lying = ("faketime", "-f", clock)
            words = ("setsid", "--ctty", *lying, sys.executable, "-m", "agent_console")
            self.program = subprocess.Popen(words, env=variables, stdin=line, stdout=line, stderr=line)
        os.close(line)
        self._seen = ""

    def sees(self, words: str, seconds: float) -> bool:
        """In everything that was painted since the last key, without its colours."""
        deadline = time.monotonic() + seconds
        while words not in self._seen:
            if not self._is_told(deadline):
                return False
            assert self._takes_more(), f"the console has ended: {self._seen[-2000:]}"
        return True

    def wait_for_end(self) -> None:
        """Read on until nobody holds the other end."""
        deadline = time.monotonic() + PATIENCE
        while self._is_told(deadline):
            if not self._takes_more():
                return
        raise AssertionError(f"the console has not ended: {self._seen[-2000:]}")

    def _is_told(self, deadline: float) -> bool:
        return bool(select.select([self._keeper], [], [], max(0.0, deadline - time.monotonic()))[0])

    def _takes_more(self) -> bool:
        try:
            told = os.read(self._keeper, 65536)
        except OSError:
            return False
        self._seen = ESCAPES.sub("", self._seen + told.decode(errors="replace"))
        return True

    def wait_for(self, words: str) -> None:
        assert self.sees(words, PATIENCE), f"no {words!r}: {self._seen[-2000:]}"

    def press_until(self, words: str, key: str) -> None:
        """Again and again, as people do when a key was too early to count."""
        deadline = time.monotonic() + PATIENCE
        self.press(key)
        while not self.sees(words, AGAIN_SECONDS):
            assert time.monotonic() < deadline, f"no {words!r}: {self._seen[-2000:]}"
            self.press(key)

    def press(self, key: str) -> None:
        self._seen = ""
        os.write(self._keeper, key.encode())

    def drop(self) -> None:
        if self._keeper >= 0:
            os.close(self._keeper)
            self._keeper = -1


@contextmanager
def line_to(world: World, clock: str | None = None) -> Iterator[Line]:
    line = Line(world, clock)
    try:
        yield line
    finally:
        line.drop()
        line.program.wait(PATIENCE)


def console_is_killed(world: World) -> None:
    with line_to(world) as line:
        line.wait_for("connected")
        line.program.kill()
        line.program.wait(PATIENCE)


def approve_and_hang_up(world: World) -> None:
    with line_to(world) as line:
        _ask_to_approve(line)
        line.press("y")
        line.drop()


def approve_by_a_wrong_clock(world: World, clock: str) -> None:
    """`clock` is how far the clock of the person's machine is off, such as +3h. Nobody else decides meanwhile."""
    assert shutil.which("faketime"), "This needs faketime: apt install faketime."
    with line_to(world, clock) as line, world.looking() as fleet:
        before = fleet.one(APPROVED)
        _ask_to_approve(line)
        line.press_until("You approved it", "y")
        assert fleet.one(APPROVED) != before
        # Both are told: faketime only waits for the console, and passes nothing on.
        os.killpg(line.program.pid, signal.SIGTERM)
        line.wait_for_end()


def _ask_to_approve(line: Line) -> None:
    line.wait_for("connected")
    line.press_until(f"{ASKER} → {ASKED}", "1")
    line.press_until("approves once", "\r")
    line.press_until("anything else", "a")

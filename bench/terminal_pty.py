"""A program in a real pty of 120x40, which counts what is sent to it and when.

It answers that it knows synchronised output, as modern terminals do, so the markers of that count too.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyte

COLUMNS, LINES = 120, 40
PATIENCE = 120.0
# Without .pyc files the start is three times slower; the others change what is drawn.
UNSET = ("PYTHONDONTWRITEBYTECODE", "NO_COLOR", "TEXTUAL_THEME", "TMUX")
# What programs ask a terminal, and what this one says: synchronised output is known, the cursor is at the top.
ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[6n": b"\x1b[1;1R"}
DOWN, UP, PAGE_DOWN = "\x1b[B", "\x1b[A", "\x1b[6~"


@dataclass(frozen=True)
class Paint:
    """Seconds until there was something to see, by the clock and on the processor."""

    waited: float
    spent: float


def nothing_to_do() -> None:
    """While one only listens."""


class PtyProgram:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._unseen = b""
        self._has_ended = False
        self.pid, self._line = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            usual = {name: value for name, value in os.environ.items() if name not in UNSET}
            modern = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvpe(command[0], list(command), usual | modern | dict(environment))

    def resize(self, lines: int) -> None:
        """As somebody does who pulls at the window; the program paints all of it anew."""
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._line, keys.encode())

    def next_bytes(self, within: float) -> bytes:
        """What comes next, nothing when nothing comes."""
        if not select.select([self._line], [], [], max(0.0, within))[0]:
            return b""
        try:
            received = os.read(self._line, 65536)
        except OSError:
            return b""
        self._unseen += received
        for question, answer in ANSWERS.items():
            if question in received:
                os.write(self._line, answer)
        return received

    def bytes_until_quiet(self, quiet: float, first: float = PATIENCE) -> bytes:
        """Everything that comes, from the first byte until nothing has come for a while."""
        received = self.next_bytes(first)
        while more := self.next_bytes(quiet):
            received += more
        return received

    def shows(self, *words: str) -> bool:
        """Whether the terminal shows these words now."""
        text = self.screen()
        return all(word in text for word in words)

    def screen(self) -> str:
        """What the terminal shows now."""
        self._stream.feed(self._unseen)
        self._unseen = b""
        return "\n".join(self._screen.display)

    def forget(self) -> None:
        """What was received and not looked at is not looked at any more."""
        self._unseen = b""

    def bytes_until(self, *words: str, quiet: float = 1.5) -> bytes:
        """Everything up to a quiet moment with these words on the screen."""
        received, deadline = b"", time.monotonic() + PATIENCE
        while not self.shows(*words):
            if time.monotonic() > deadline:
                shown = "\n".join(self._screen.display)
                raise TimeoutError(f"no {words} on:\n{shown}")
            received += self.next_bytes(1.0)
        while more := self.next_bytes(quiet):
            received += more
        return received

    def bytes_during(
        self, seconds: float, every: float = 1.0, do: Callable[[], None] = nothing_to_do
    ) -> tuple[int, int]:
        """How many bytes come meanwhile, and in how many pieces; something is done at every so many seconds."""
        received = pieces = 0
        began = time.monotonic()
        due = began
        while (now := time.monotonic()) < began + seconds:
            if now >= due:
                do()
                due += every
            more = self.next_bytes(min(due, began + seconds) - time.monotonic())
            received += len(more)
            pieces += bool(more)
        return received, pieces

    def paint_after(self, keys: str, quiet: float) -> Paint:
        """From the key to the first byte of what it changes; then it is left in peace until nothing comes."""
        began, spent = time.perf_counter(), self._cpu_seconds()
        self.press(keys)
        if not self.next_bytes(PATIENCE):
            raise TimeoutError(f"nothing is painted after {keys!r}")
        paint = Paint(time.perf_counter() - began, self._cpu_seconds() - spent)
        while self.next_bytes(quiet):
            pass
        return paint

    def _cpu_seconds(self) -> float:
        """What all threads of the program have spent so far."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    @property
    def is_running(self) -> bool:
        if not self._has_ended:
            self._has_ended = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        return not self._has_ended

    def close(self) -> None:
        deadline = time.monotonic() + PATIENCE
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        while self.is_running:
            # Nobody ends while what it says last is not read.
            self.next_bytes(0.1)
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self._line)

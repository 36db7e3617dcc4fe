"""A program in a real pty: read what it writes, press keys, send signals, see how it ended."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 60.0
ROOT = Path(__file__).parents[2]

# Taking the terminal as one's own must happen in the child, and forking here would copy the test's threads.
LOGIN = "import os, sys; os.login_tty(0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


class RealTerminal:
    """Starts the Python program in a terminal of its own."""

    def __init__(self, arguments: Sequence[str], size: tuple[int, int] = (80, 24), **environment: str) -> None:
        self.received = ""
        self._keeper, self._line = pty.openpty()
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._line_was = termios.tcgetattr(self._line)
        self._program = subprocess.Popen(
            [sys.executable, "-c", LOGIN, *arguments],
            stdin=self._line,
            stdout=self._line,
            stderr=self._line,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment},
        )

    def read_until(self, marker: str) -> str:
        """Everything received up to now, once the marker is in it."""
        while marker not in self.received:
            ready, _, _ = select.select([self._keeper], [], [], PATIENCE)
            if not ready:
                raise AssertionError(f"no {marker!r} in {self.received[-500:]!r}")
            self._read()
        return self.received

    def press(self, keys: str) -> None:
        os.write(self._keeper, keys.encode())

    def kill(self, number: int) -> None:
        self._program.send_signal(number)

    def wait_until_stopped(self) -> None:
        """Return when the program has put itself to sleep, as after ctrl+z."""
        _, status = os.waitpid(self._program.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def hang_up(self) -> int:
        """Cut the line, as a dropped connection does, and wait for the end."""
        self._cut()
        return self._program.wait(PATIENCE)

    def end(self) -> int:
        """Read on until the program has ended: its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._program.poll() is None:
            assert time.monotonic() < deadline, f"still running: {self.received[-500:]!r}"
            if select.select([self._keeper], [], [], 0.02)[0]:
                self._read()
        while select.select([self._keeper], [], [], 0)[0]:
            self._read()
        return self._program.returncode

    def line_is_as_before(self) -> bool:
        return termios.tcgetattr(self._line) == self._line_was

    def close(self) -> None:
        self._cut()
        self._program.kill()
        self._program.wait()

    def _cut(self) -> None:
        os.close(self._line)
        os.close(self._keeper)

    def _read(self) -> None:
        self.received += os.read(self._keeper, 65536).decode("utf-8", "replace")

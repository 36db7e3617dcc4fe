"""The real console in a real terminal: every byte it writes is kept, and a person's eyes see what they make."""

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.program import environment
from tests.support.warm_python import Session
from tests.support.warm_start import WarmProgram, warm_python
from tests.tui_terminal.emulator import terminal

PATIENCE = 60.0
LOOK_SECONDS = 0.05
SIZE = (100, 30)


class PtyConsole:
    """One console; `received` is all that it ever wrote."""

    def __init__(self, keeper: int, program: WarmProgram) -> None:
        self.received = b""
        self.program = program
        self._keeper = keeper
        self._screen, self._stream = terminal(*SIZE)
        self._fed = 0

    def press(self, keys: str) -> None:
        os.write(self._keeper, keys.encode())

    def until(self, holds: Callable[[str], object], what: str) -> None:
        """Read on until the screen is as it should be."""
        deadline = time.monotonic() + PATIENCE
        while not holds(self.screen()):
            assert time.monotonic() < deadline, f"not seen: {what}\n{self.screen()}"
            self._read()

    def screen(self) -> str:
        self._stream.feed(self.received[self._fed :].decode("utf-8", "replace"))
        self._fed = len(self.received)
        return "\n".join(self._screen.text())

    def end(self) -> int:
        """Read on until the program has ended, and what it wrote last."""
        while self.program.poll() is None:
            self._read()
        while self._read():
            pass
        return self.program.wait()

    def _read(self) -> bool:
        ready, _, _ = select.select([self._keeper], [], [], LOOK_SECONDS)
        if ready:
            self.received += os.read(self._keeper, 65536)
        return bool(ready)


@contextmanager
def console_in_a_pty(dsn: str, home: Path) -> Iterator[PtyConsole]:
    keeper, line = pty.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    variables = environment(home, AGENT_CONSOLE_DSN=dsn, TERM="xterm-256color", COLORTERM="truecolor")
    arguments = ("--team", "example", "--user", "ana@example.com")
    program = warm_python().start(
        "agent_console", *arguments, environment=variables, session=Session.TERMINAL,
        stdin=line, stdout=line, stderr=line,
    )  # fmt: skip
    try:
        yield PtyConsole(keeper, program)
    finally:
        program.kill()
        program.wait()
        os.close(line)
        os.close(keeper)

"""Starting programs from a Python that is warm already: see warm_python."""

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self, TextIO

from tests.support.warm_python import Session, Start

PATIENCE = 60.0
REPOSITORY = Path(__file__).parents[2]
PIPE_HOLDS = 65536
PROGRAMS = "programs"
"""The group of tests that start programs: in one worker, which warms up one Python for all of them."""


class WarmProgram:
    """A program that was started: what subprocess.Popen tells of one, though its parent is the warm Python."""

    def __init__(self, report: int, stdin: TextIO | None, stdout: TextIO | None, stderr: TextIO | None) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._report = report
        self._heard = b""
        self.pid = self._told(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Nobody leaves before the program has; a test that failed does not wait for it."""
        if error is not None:
            self.kill()
        self._close_files()
        self.wait()

    def poll(self) -> int | None:
        while self.returncode is None and self._hears(0):
            self._next_status(0)
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        while self.returncode is None:
            self._next_status(timeout)
        return self.returncode

    def wait_until_stopped(self) -> None:
        """Return when the program has put itself to sleep, as after ctrl+z."""
        assert os.WIFSTOPPED(self._next_status(PATIENCE))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: str = "", timeout: float = PATIENCE) -> tuple[str, str]:
        """Give it all its input, and take all that it writes until it ends."""
        self._give(given.encode())
        written = self._written(time.monotonic() + timeout)
        self._close_files()
        self.wait(timeout)
        out, err = (written[file].decode() if file else "" for file in (self.stdout, self.stderr))
        return out, err

    def _give(self, given: bytes) -> None:
        if self.stdin is None:
            return
        assert len(given) <= PIPE_HOLDS, "more than can be given before anybody reads"
        with suppress(BrokenPipeError):
            os.write(self.stdin.fileno(), given)
        self.stdin.close()

    def _written(self, deadline: float) -> dict[TextIO, bytes]:
        written = {file: b"" for file in (self.stdout, self.stderr) if file}
        still_open = [*written]
        while still_open:
            ready, _, _ = select.select(still_open, [], [], max(0, deadline - time.monotonic()))
            if not ready:
                self.kill()
                raise AssertionError(f"still running; it wrote {list(written.values())}")
            for file in ready:
                part = os.read(file.fileno(), PIPE_HOLDS)
                written[file] += part
                if not part:
                    still_open.remove(file)
        return written

    def _close_files(self) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()

    def _next_status(self, timeout: float) -> int:
        status = self._told(timeout)
        if not os.WIFSTOPPED(status):
            self.returncode = os.waitstatus_to_exitcode(status)
            os.close(self._report)
        return status

    def _hears(self, timeout: float) -> bool:
        return b"\n" in self._heard or bool(select.select([self._report], [], [], timeout)[0])

    def _told(self, timeout: float) -> int:
        while b"\n" not in self._heard:
            assert self._hears(timeout), "the program is still running"
            part = os.read(self._report, 4096)
            assert part, "the warm Python has ended"
            self._heard += part
        number, _, self._heard = self._heard.partition(b"\n")
        return int(number)


@dataclass(frozen=True)
class _StandardFile:
    theirs: int
    ours: TextIO | None


def _input(given: int | None) -> _StandardFile:
    if given is not None:
        return _StandardFile(given, None)
    theirs, ours = os.pipe()
    return _StandardFile(theirs, os.fdopen(ours, "w", encoding="utf-8"))


def _output(given: int | None) -> _StandardFile:
    if given is not None:
        return _StandardFile(given, None)
    ours, theirs = os.pipe()
    return _StandardFile(theirs, os.fdopen(ours, encoding="utf-8"))


class WarmPython:
    """Ends when it is closed, or when the process that asks it has ended."""

    def __init__(self) -> None:
        self._asking, other = socket.socketpair()
        unset = ("AGENT_CONSOLE", "TEXTUAL", "PYTHONWARNINGS")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm_python", str(other.fileno())],
                cwd=REPOSITORY,
                # As the program itself sets it before it imports anything.
                env=environment | {"PYDANTIC_DISABLE_PLUGINS": "__all__"},
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )

    def start(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str],
        folder: Path | None = None,
        session: Session = Session.SHARED,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> WarmProgram:
        """Start `python -m module arguments`; a file that is not given becomes a pipe of the program."""
        start = Start(module, [*arguments], dict(environment), str(folder or Path.cwd()), session)
        files = (_input(stdin), _output(stdout), _output(stderr))
        listening, report = os.pipe()
        header, body = start.packed()
        socket.send_fds(self._asking, [header], [*(file.theirs for file in files), report])
        self._asking.sendall(body)
        os.close(report)
        for file in files:
            if file.ours is not None:
                os.close(file.theirs)
        return WarmProgram(listening, *(file.ours for file in files))

    def close(self) -> None:
        self._asking.close()
        self._process.wait(PATIENCE)


@cache
def warm_python() -> WarmPython:
    """One for this process, from the first program that is started until the end."""
    started = WarmPython()
    atexit.register(started.close)
    return started

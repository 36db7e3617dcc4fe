"""A Python that has imported everything and, by forking, becomes whichever program a test wants to start.

Importing is nearly all that a start costs, so it is done once. A program that is started here has its own process,
arguments, environment, folder, files and session, and leaves through the interpreter's own end, as after
`python -m`. What it cannot show is what starting itself imports, and in which order.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum

HEADER_BYTES = 4
FILES = 4
"""Standard input, output and error, and where to report on the program."""

# What our own modules import only when they need it.
LAZY = (
    "alembic.command",
    "sqlalchemy.dialects.postgresql.psycopg",
    "textual.drivers.linux_driver",
    "textual.widgets",
    "uvicorn.lifespan.on",
)


class Session(StrEnum):
    SHARED = "shared"
    OWN = "own"
    TERMINAL = "terminal"
    """Its own, and standard input is the terminal of it."""


@dataclass(frozen=True)
class Start:
    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    session: Session

    def packed(self) -> tuple[bytes, bytes]:
        body = json.dumps(asdict(self)).encode()
        return len(body).to_bytes(HEADER_BYTES, "big"), body

    @classmethod
    def unpacked(cls, body: bytes) -> "Start":
        given = json.loads(body)
        return cls(**given | {"session": Session(given["session"])})


def import_everything() -> None:
    """A warning while importing would be lost to the tests that look for one, so it is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = importlib.import_module("agent_console")
        for found in pkgutil.walk_packages(ours.__path__, "agent_console."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)
        for name in LAZY:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def serve(asking: socket.socket) -> tuple[Start, list[int]] | None:
    """Start what is asked for and report on it until nobody asks any more.

    In a child it returns what to become; in the parent it returns nothing, when all is over.
    """
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asking.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            report_changes(reports)
        if asking.fileno() in ready:
            header, files, _, _ = socket.recv_fds(asking, HEADER_BYTES, FILES)
            if not header:
                break
            start = Start.unpacked(asking.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL))
            assert threading.active_count() == 1, f"a fork would lose a thread: {threading.enumerate()}"
            pid = os.fork()
            if pid == 0:
                asking.close()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return start, files[:3]
            for file in files[:3]:
                os.close(file)
            reports[pid] = files[3]
            tell(files[3], pid)
    for pid in reports:
        os.kill(pid, signal.SIGKILL)
    return None


def report_changes(reports: dict[int, int]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return
        tell(reports[pid], status)
        if not os.WIFSTOPPED(status):
            os.close(reports.pop(pid))


def tell(report: int, number: int) -> None:
    """A test that has given up no longer listens."""
    with suppress(BrokenPipeError):
        os.write(report, f"{number}\n".encode())


def become(start: Start, files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if start.session is Session.OWN:
        os.setsid()
    elif start.session is Session.TERMINAL:
        os.login_tty(0)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    time.tzset()
    open_standard_files()
    show_warnings(start.environment.get("PYTHONWARNINGS", ""))
    sys.path[0] = start.folder
    sys.argv[1:] = start.arguments


def open_standard_files() -> None:
    """Made anew as the interpreter makes them: whether they are a terminal decides how they buffer."""
    way, errors = sys.stdout.encoding, sys.stdout.errors
    opened = {
        "stdin": os.fdopen(0, encoding=way, errors=errors, closefd=False),
        "stdout": written_to(1, way, errors),
        "stderr": written_to(2, way, "backslashreplace"),
    }
    for name, file in opened.items():
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)


def written_to(number: int, encoding: str, errors: str | None) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    if os.environ.get("PYTHONUNBUFFERED"):
        return io.TextIOWrapper(raw, encoding, errors, "\n", write_through=True)
    by_line = number == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, "\n", line_buffering=by_line)


def show_warnings(wanted: str) -> None:
    """As the interpreter reads PYTHONWARNINGS, for the values that tests give it."""
    match wanted:
        case "":
            return
        case "default" | "error":
            sys.warnoptions.append(wanted)
            warnings.simplefilter(wanted)
        case _:
            raise ValueError(f"PYTHONWARNINGS={wanted} wants a start of its own")


def main() -> None:
    import_everything()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        become(*asked)
        runpy.run_module(asked[0].module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

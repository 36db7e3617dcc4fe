"""Time until the terminal shows something, in a real pty that answers nothing.

    python bench/first_paint.py --marker Agents -- agent-console demo

Medians of alternating runs of: the bare interpreter, a bare Textual app (header, table, footer), and the
command: its first byte, and the first frame that holds the marker.
"""

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

COLUMNS, LINES = 120, 40
PATIENCE = 30.0

BARE_MARKER = "bare-content"
BARE_APP = f"""
from textual.app import App
from textual.widgets import DataTable, Footer, Header

class Bare(App):
    def compose(self):
        yield Header()
        yield DataTable()
        yield Footer()

    def on_mount(self):
        table = self.query_one(DataTable)
        table.add_columns("name", "status")
        for number in range(40):
            table.add_row("{BARE_MARKER}", "running")

Bare().run()
"""


class Times(NamedTuple):
    """Seconds from exec; None when it didn't come."""

    first_byte: float | None
    marker: float | None
    end: float


def start(command: Sequence[str]) -> tuple[int, int]:
    child, line = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _UNSET},
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        os.execvpe(command[0], list(command), environment)
    return child, line


# Without .pyc files the start is three times slower; the others change what is drawn.
_UNSET = {"PYTHONDONTWRITEBYTECODE", "NO_COLOR", "TEXTUAL_THEME"}


def run(command: Sequence[str], marker: str | None) -> Times:
    """Run until the marker is seen, or to the end when there is none to wait for."""
    began = time.perf_counter()
    child, line = start(command)
    received, first_byte, seen = b"", None, None
    while time.perf_counter() - began < PATIENCE and select.select([line], [], [], PATIENCE)[0]:
        try:
            chunk = os.read(line, 65536)
        except OSError:
            break
        now = time.perf_counter() - began
        first_byte = now if first_byte is None else first_byte
        received += chunk
        if marker is not None and marker.encode() in received:
            seen = now
            os.kill(child, signal.SIGKILL)
            break
    os.waitpid(child, 0)
    ended = time.perf_counter() - began
    os.close(line)
    return Times(first_byte, seen, ended)


def milliseconds(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) * 1000 if len(known) == len(values) else None


def measure(command: Sequence[str], marker: str, runs: int) -> dict[str, float | None]:
    bare_python = [sys.executable, "-c", "pass"]
    bare_textual = [sys.executable, "-c", BARE_APP]
    for warm in (bare_python, bare_textual):
        run(warm, BARE_MARKER)
    python, textual, ours = [], [], []
    for _ in range(runs):
        python.append(run(bare_python, None).end)
        textual.append(run(bare_textual, BARE_MARKER).marker)
        if command:
            ours.append(run(command, marker))
    figures = {
        "python -c pass, to its end": milliseconds(python),
        "bare Textual app, to its content": milliseconds(textual),
    }
    if command:
        figures["command, to its first byte"] = milliseconds([times.first_byte for times in ours])
        figures[f"command, to {marker!r}"] = milliseconds([times.marker for times in ours])
    return figures


def report(figures: dict[str, float | None]) -> None:
    python = figures["python -c pass, to its end"]
    textual = figures["bare Textual app, to its content"]
    print(f"{'median of alternating runs':36}{'ms':>8}{'x python':>10}{'x textual':>11}")
    for what, value in figures.items():
        if value is None or not python or not textual:
            print(f"{what:36}{'never':>8}")
        else:
            print(f"{what:36}{value:>8.0f}{value / python:>10.2f}{value / textual:>11.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--marker", default="Overview", help="text of the first frame with real content")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("command", nargs="*", help="what to measure (default: agent-console, if installed)")
    arguments = parser.parse_args()
    beside_python = shutil.which("agent-console", path=str(Path(sys.executable).parent))
    command = arguments.command or [found for found in (beside_python,) if found]
    report(measure(command, arguments.marker, max(7, arguments.runs)))


if __name__ == "__main__":
    main()

"""Bytes to the terminal, stock Textual against ours, for the same app at 120x40 in a real pty.

    python bench/terminal_bytes.py

The pty answers that it knows synchronised output, as modern terminals do, so its markers count too.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.coordinate import Coordinate
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header

from agent_console.tui.terminal.terminal_app import TerminalApp

COLUMNS, LINES = 120, 40
QUIET = 0.5
ROWS = 200


def fill(table: DataTable[str]) -> None:
    table.add_columns("id", "agent", "type", "status", "age", "attempts")
    for number in range(ROWS):
        table.add_row(f"job_{number:022}", f"atlas-{number % 7}", "report", "running", f"{number}s", "1/3")


class Fleet(Screen[None]):
    """The screen under measurement: u refreshes all, t changes ten cells, q ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("u", "unchanged", "Refresh"),
        ("t", "ten", "Change ten"),
        ("q", "app.quit", "Quit"),
    ]

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable[str](cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        fill(self.query_one(DataTable))

    def action_unchanged(self) -> None:
        self.query_one(DataTable).refresh()
        self.app.refresh()

    def action_ten(self) -> None:
        table = self.query_one(DataTable)
        for row in range(10):
            table.update_cell_at(Coordinate(row, 5), "2/3")


class Stock(App[None]):
    TITLE = "fleet"

    def get_default_screen(self) -> Screen[None]:
        return Fleet()


class Ours(TerminalApp[None]):
    TITLE = Stock.TITLE

    def get_default_screen(self) -> Screen[None]:
        return Fleet()


class Terminal:
    """A pty with the app on it."""

    def __init__(self, which: str) -> None:
        self.child, self.line = pty.fork()
        if self.child == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.environ.pop("NO_COLOR", None)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execv(sys.executable, [sys.executable, __file__, which])

    def bytes_until_quiet(self, first: float = 20.0) -> bytes:
        """Everything that comes, from the first byte until nothing has come for a while."""
        received = b""
        while select.select([self.line], [], [], QUIET if received else first)[0]:
            try:
                received += os.read(self.line, 65536)
            except OSError:
                break
            if b"\x1b[?2026$p" in received[-200:]:
                os.write(self.line, b"\x1b[?2026;2$y")
        return received

    def bytes_after(self, key: str) -> int:
        os.write(self.line, key.encode())
        return len(self.bytes_until_quiet(first=2 * QUIET))

    def close(self) -> None:
        os.write(self.line, b"q")
        self.bytes_until_quiet()
        os.close(self.line)
        os.waitpid(self.child, 0)


def measure(which: str) -> dict[str, int]:
    terminal = Terminal(which)
    figures = {"first paint": len(terminal.bytes_until_quiet())}
    figures["refresh, nothing changed"] = terminal.bytes_after("u")
    figures["ten cells changed"] = terminal.bytes_after("t")
    figures["cursor one row down"] = terminal.bytes_after("\x1b[B")
    figures["page down"] = terminal.bytes_after("\x1b[6~")
    terminal.close()
    return figures


def report(write: Callable[[str], object]) -> None:
    stock, ours = measure("stock"), measure("ours")
    write(f"{COLUMNS}x{LINES}, bytes\n{'':26}{'stock':>10}{'ours':>10}{'ours/stock':>12}\n")
    for what, before in stock.items():
        write(f"{what:26}{before:>10,}{ours[what]:>10,}{ours[what] / before if before else 0:>12.3f}\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        (Stock if sys.argv[1] == "stock" else Ours)().run()
    else:
        report(sys.stdout.write)

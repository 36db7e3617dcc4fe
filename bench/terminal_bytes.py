"""Bytes to the terminal, stock Textual against ours, for the same app at 120x40 in a real pty.

    python -m bench.terminal_bytes

Ends with exit code 1 when ours sends more than it may. What the whole console sends: bench.terminal_console.
"""

import sys
from typing import ClassVar

from bench.terminal_pty import COLUMNS, DOWN, LINES, PAGE_DOWN, PtyProgram
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.coordinate import Coordinate
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header

from agent_console.tui.terminal.terminal_app import TerminalApp

QUIET = 0.5
ROWS = 200
FIRST_PAINT, UNCHANGED, TEN_CELLS = "first paint", "refresh, nothing changed", "ten cells changed"
MOST = {FIRST_PAINT: 25_000, UNCHANGED: 0, TEN_CELLS: 600}


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


def measure(which: str) -> dict[str, int]:
    program = PtyProgram([sys.executable, "-m", "bench.terminal_bytes", which])

    def after(keys: str) -> int:
        program.press(keys)
        return len(program.bytes_until_quiet(QUIET, first=2 * QUIET))

    figures = {FIRST_PAINT: len(program.bytes_until_quiet(QUIET))}
    figures[UNCHANGED] = after("u")
    figures[TEN_CELLS] = after("t")
    figures["cursor one row down"] = after(DOWN)
    figures["page down"] = after(PAGE_DOWN)
    program.close()
    return figures


def report() -> bool:
    stock, ours = measure("stock"), measure("ours")
    print(f"{COLUMNS}x{LINES}, bytes\n{'':26}{'stock':>10}{'ours':>10}{'ours/stock':>12}{'at most':>10}")
    for what, before in stock.items():
        most = f"{MOST[what]:>10,}" if what in MOST else ""
        print(f"{what:26}{before:>10,}{ours[what]:>10,}{ours[what] / before if before else 0:>12.3f}{most}")
    return all(ours[what] <= most for what, most in MOST.items())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        (Stock if sys.argv[1] == "stock" else Ours)().run()
    else:
        sys.exit(0 if report() else 1)

"""A screen as operators know it, drawn once by stock Textual and once by ours."""

from collections.abc import Iterator
from random import Random

from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.coordinate import Coordinate
from textual.driver import Driver
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Header, Input, Label, ProgressBar, Sparkline, Static

from agent_console.tui.terminal.terminal_app import TerminalApp

WORDS = ("atlas", "running", "漢字の表", "né é", "dead_letter", "ÅÄÖ ←→", "한국어", "✓ done", "   ", "x" * 30)


def fleet_widgets() -> Iterator[Widget]:
    yield Header()
    with Horizontal():
        yield DataTable[str](id="jobs", cursor_type="row", zebra_stripes=True)
        with VerticalScroll(id="detail"):
            yield Static("[b]job[/b] [i]detail[/i] [u]under[/u] [s]gone[/s] [reverse]now[/]", id="words")
            yield Label("[on red] 3 failed [/] [dim]of 12[/dim]")
            yield ProgressBar(total=100, show_eta=False, id="progress")
            yield Sparkline([1, 2, 3, 9, 4, 0], id="load")
            yield Input("filter", id="filter")
    yield Footer()


def fill(app: App[None]) -> None:
    table = app.query_one("#jobs", DataTable)
    table.add_columns("id", "name", "status")
    for number in range(60):
        table.add_row(f"job_{number:04}", WORDS[number % len(WORDS)], "queued", key=str(number))
    app.query_one("#filter", Input).cursor_blink = False


class StockFleet(App[None]):
    TITLE = "fleet"
    CSS = "#jobs { width: 2fr; } #detail { width: 1fr; border: round $primary; }"

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class)

    def compose(self) -> ComposeResult:
        yield from fleet_widgets()

    def on_mount(self) -> None:
        fill(self)


class OurFleet(TerminalApp[None]):
    TITLE = StockFleet.TITLE
    CSS = StockFleet.CSS

    def compose(self) -> ComposeResult:
        yield from fleet_widgets()

    def on_mount(self) -> None:
        fill(self)


class Question(ModalScreen[None]):
    CSS = "Question { align: center middle; } Static { width: 30; height: 5; border: thick $error; }"

    def compose(self) -> ComposeResult:
        yield Static("Approve 漢字? [b]y[/b]/n")


class Elsewhere(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static("another pane 漢字\n" * 8)
        yield Footer()


def change(app: App[None], chance: Random) -> None:
    """One thing an operator, or the fleet, might do next."""
    deed = chance.randrange(9)
    if deed == 0 and len(app.screen_stack) == 1:
        app.push_screen(chance.choice((Question, Elsewhere))())
    elif len(app.screen_stack) > 1:
        app.pop_screen()
    elif deed == 1:
        app.query_one("#words", Static).update(chance.choice(WORDS) * chance.randrange(1, 5))
    elif deed == 2:
        app.query_one("#progress", ProgressBar).update(progress=chance.randrange(100))
    elif deed == 3:
        app.query_one("#load", Sparkline).data = [chance.randrange(20) for _ in range(12)]
    elif deed == 4:
        app.query_one("#filter", Input).value = chance.choice(WORDS)
    elif deed == 5:
        app.query_one("#jobs", DataTable).move_cursor(row=chance.randrange(60), animate=False)
    elif deed == 6:
        app.query_one("#detail").styles.width = chance.choice((20, 33, "1fr"))
    elif deed == 7:
        app.theme = chance.choice(("textual-dark", "textual-light", "nord"))
    else:
        table = app.query_one("#jobs", DataTable)
        for _ in range(4):
            table.update_cell_at(Coordinate(chance.randrange(60), chance.randrange(3)), chance.choice(WORDS))

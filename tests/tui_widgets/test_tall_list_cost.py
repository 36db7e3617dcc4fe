"""A key in a list of items of different heights costs the lines it changes."""

from __future__ import annotations

from textual import on
from textual.app import App, ComposeResult
from textual.content import Content
from textual.strip import Strip

from agent_console.tui.widgets.tall_list import TallList

ITEMS = 100
HEIGHT = 3


class Counted:
    """Items of three lines each; knows how often it had to lay one out."""

    def __init__(self) -> None:
        self.laid_out = 0

    def __len__(self) -> int:
        return ITEMS

    def key_at(self, index: int) -> str:
        return f"#{index}"

    def index_of(self, key: str) -> int | None:
        return int(key.removeprefix("#"))

    def lines_at(self, index: int, width: int) -> tuple[Content, ...]:
        self.laid_out += 1
        return tuple(Content(f"item {index}, line {line}"[:width]) for line in range(HEIGHT))

    def height_at(self, index: int, width: int) -> int:
        return HEIGHT

    def can_hold_cursor(self, index: int) -> bool:
        return True


class Watched(TallList):
    def __init__(self) -> None:
        super().__init__(empty=Content("Nothing"))
        self.rendered: list[int] = []
        self.painted_when_told: tuple[int, ...] = ()

    def render_line(self, y: int) -> Strip:
        self.rendered.append(y)
        return super().render_line(y)

    @on(TallList.Moved)
    def look(self) -> None:
        self.painted_when_told = (*self.rendered,)


class Items(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.list = Watched()

    def compose(self) -> ComposeResult:
        yield self.list

    def on_mount(self) -> None:
        self.list.focus()


async def test_a_step_lays_nothing_out_again_and_paints_what_it_changes_before_it_tells() -> None:
    app, source = Items(), Counted()
    async with app.run_test(size=(40, 24)) as pilot:
        app.list.show(source)
        await pilot.press("up")
        source.laid_out = 0
        app.list.rendered.clear()

        await pilot.press("up")

        assert source.laid_out == 0
        assert sorted(app.list.rendered) == [15, 18]
        assert sorted(app.list.painted_when_told) == [15, 18]


async def test_another_width_and_other_items_are_laid_out_anew() -> None:
    app, source = Items(), Counted()
    async with app.run_test(size=(40, 24)) as pilot:
        app.list.show(source)
        await pilot.pause()
        source.laid_out = 0

        await pilot.resize_terminal(12, 24)
        await pilot.pause()
        narrower, others = source.laid_out, Counted()
        app.list.show(others)
        await pilot.pause()

        assert narrower > 0
        assert others.laid_out > 0

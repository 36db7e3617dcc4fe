"""What is painted is what Textual would paint, and what lies behind it is not rendered for that."""

from textual._compositor import Compositor
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from agent_console.tui.terminal.front_first import FrontFirst
from agent_console.tui.terminal.terminal_app import TerminalApp

CROPS = (
    Region(0, 0, 80, 24),
    Region(0, 3, 80, 1),
    Region(10, 2, 5, 3),
    Region(35, 0, 30, 24),
    Region(79, 23, 1, 1),
)


class Counted(Vertical):
    rendered = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        Counted.rendered += 1
        return super().render_lines(crop)


class Nested(TerminalApp[None]):
    CSS = """
    Horizontal { height: 6; }
    .left { width: 30; } .right { width: 1fr; background: $panel; }
    .over { offset: 5 2; layer: above; width: 12; height: 3; background: $error; }
    Screen { layers: default above; }
    """

    def compose(self) -> ComposeResult:
        with Counted(), Counted():
            with Horizontal():
                yield Static("left\n" * 6, classes="left")
                yield Static("right " * 60, classes="right")
            yield Static("below")
        yield Static("over", classes="over")


class Remembering(Static):
    """Knows which part of it was asked for."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.rendered: list[Region] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        self.rendered.append(crop)
        return super().render_lines(crop)


class SideBySide(TerminalApp[None]):
    CSS = "Remembering { width: 40; height: 24; }"

    def __init__(self) -> None:
        super().__init__()
        self.long, self.beside = Remembering("row\n" * 24), Remembering("detail\n" * 24)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self.long
            yield self.beside


def cells(chops: object, crop: Region) -> list[str]:
    assert isinstance(chops, list)
    lines = []
    for y in crop.line_range:
        known = [(x, strip) for x, strip in chops[y].items() if strip is not None]
        within = [
            (x, strip.text, [s.style for s in strip])
            for x, strip in known
            if x < crop.right and x + strip.cell_length > crop.x
        ]
        lines.append(repr(within))
    return lines


async def test_every_part_of_the_screen_is_what_it_would_be() -> None:
    app = Nested()
    async with app.run_test(size=(80, 24)):
        compositor = app.screen._compositor
        assert isinstance(compositor, FrontFirst)
        for crop in CROPS:
            ours = compositor._render_chops(crop, lambda y: y % 2 == 0 or y > 4)
            theirs = Compositor._render_chops(compositor, crop, lambda y: y % 2 == 0 or y > 4)

            assert cells(ours, crop) == cells(theirs, crop), crop


async def test_what_can_not_be_seen_is_not_rendered() -> None:
    app = Nested()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        Counted.rendered = 0
        app.screen._compositor._render_chops(Region(0, 1, 80, 1), lambda y: True)
        behind_the_texts = Counted.rendered
        app.screen._compositor._render_chops(Region(0, 20, 80, 1), lambda y: True)

    assert behind_the_texts == 0
    assert Counted.rendered > 0


async def test_of_a_list_only_the_lines_that_are_looked_at_are_rendered_and_nothing_beside_it() -> None:
    app = SideBySide()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.long.rendered.clear()
        app.beside.rendered.clear()

        app.screen._compositor._render_chops(Region(0, 7, 40, 2), {7, 8}.__contains__)

    assert app.long.rendered == [Region(0, 7, 40, 2)]
    assert app.beside.rendered == []

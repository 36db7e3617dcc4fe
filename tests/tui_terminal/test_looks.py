"""The shortest change of the pen ends in the same pen."""

import subprocess
import sys
from itertools import product

import pyte
import pytest
from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

from agent_console.tui.terminal.looks import PLAIN, Look, change, look_of

STYLES = (
    "none",
    "bold",
    "dim bold",
    "italic underline #ff8800 on #102030",
    "bold #ff8800 on #102030",
    "reverse strike red on default",
    "blink default on bright_blue",
    "color(123) on color(200)",
)
SYSTEMS = (ColorSystem.STANDARD, ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR)


def pen_after(sequence: str) -> pyte.screens.Char:
    screen = pyte.Screen(4, 1)
    pyte.Stream(screen).feed(sequence + "x")
    return screen.buffer[0][0]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
@pytest.mark.parametrize("style", STYLES)
def test_a_style_looks_as_stock_textual_would_write_it(style: str, system: ColorSystem) -> None:
    stock = Strip.render_style(Style.parse(style).copy(), "x", system)

    ours = change(None, look_of(Style.parse(style), system))

    assert pen_after(ours) == pen_after(stock)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_from_any_look_to_any_other(system: ColorSystem) -> None:
    looks = [look_of(Style.parse(style), system) for style in STYLES]

    for before, after in product(looks, looks):
        changed = pen_after(change(None, before) + change(before, after))

        assert changed == pen_after(change(None, after)), (before, after)


def test_ending_bold_does_not_send_the_colours_again() -> None:
    bold = Look(1, "38;2;255;136;0", "48;2;16;32;48")

    assert change(bold, bold._replace(attributes=0)) == "\x1b[22m"


def test_ending_bold_keeps_dim() -> None:
    both = Look(0b11, "38;2;255;136;0", "48;2;16;32;48")

    assert change(both, both._replace(attributes=0b10)) == "\x1b[22;2m"


def test_back_to_plain_is_a_reset() -> None:
    assert change(Look(1, "31", "44"), PLAIN) == "\x1b[m"


@pytest.mark.parametrize(("term", "keeps"), [("xterm-256color", True), ("screen", False), ("no-such", False)])
def test_terminfo_tells_whether_erasing_keeps_the_background(term: str, keeps: bool) -> None:
    """In a process of its own: terminfo is asked about one terminal per process."""
    ask = (
        f"from agent_console.tui.terminal import background_erase as b; print(b.erase_keeps_background({term!r}))"
    )

    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True, text=True)

    assert answer.stdout.strip() == str(keeps)

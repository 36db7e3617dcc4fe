"""Without colour nothing is coloured, not even grey, and what stood out by its background still does."""

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from agent_console.tui.terminal.without_colour import WithoutColour
from agent_console.tui.themes import DARK, LIGHT


def seen(style: str, around: str) -> Style:
    [segment] = WithoutColour().apply([Segment("x", Style.parse(style))], Color.parse(around))
    assert segment.style is not None
    return segment.style


def test_colours_go_and_everything_else_stays() -> None:
    style = seen("bold underline #ff6b6b on #121212", "#121212")

    assert (style.color, style.bgcolor) == (
        Style.parse("default on default").color,
        Style.parse("on default").bgcolor,
    )
    assert (style.bold, style.underline, style.reverse) == (True, True, None)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_a_cursor_is_reversed_and_a_bar_is_not(theme: Theme) -> None:
    background, panel, primary = (
        Color.parse(str(name)) for name in (theme.background, theme.panel, theme.primary)
    )
    cursor = background.blend(primary, 0.3)

    assert seen(f"on {cursor.hex}", background.hex).reverse
    assert not seen(f"on {panel.hex}", background.hex).reverse

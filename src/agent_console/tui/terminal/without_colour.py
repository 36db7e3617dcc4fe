"""For NO_COLOR: not one colour is sent, greys included. What only a background set off is reversed instead."""

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import Monochrome

_PLAIN = Style.from_color(RichColor.default(), RichColor.default())
_REVERSED = _PLAIN + Style(reverse=True)

STANDS_OUT = 0.13
"""A difference in brightness. Below are bars, tracks and what lies dimmed behind a dialog; above is a cursor."""


class WithoutColour(Monochrome):
    """Textual's own filter sends greys, which are colours to a terminal: dark ones on a page that is light."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, _without_colour(style or Style.null(), background), control)
            for text, style, control in segments
        ]


@lru_cache(maxsize=4096)
def _without_colour(style: Style, around: Color) -> Style:
    return style + (_REVERSED if _stands_out(style.bgcolor, around) else _PLAIN)


def _stands_out(background: RichColor | None, around: Color) -> bool:
    if background is None or background.is_default:
        return False
    return abs(Color.from_rich_color(background).brightness - around.brightness) > STANDS_OUT

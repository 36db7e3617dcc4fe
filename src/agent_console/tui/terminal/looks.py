"""How a cell looks, and the shortest way to tell a terminal to draw like that."""

from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style

DEFAULT_FOREGROUND = "39"
DEFAULT_BACKGROUND = "49"


class Attribute(NamedTuple):
    """One attribute of a style: the code that turns it on, and the one that ends it and its neighbours."""

    name: str
    on: str
    off: str


ATTRIBUTES = (
    Attribute("bold", "1", "22"),
    Attribute("dim", "2", "22"),
    Attribute("italic", "3", "23"),
    Attribute("underline", "4", "24"),
    Attribute("blink", "5", "25"),
    Attribute("blink2", "6", "25"),
    Attribute("reverse", "7", "27"),
    Attribute("conceal", "8", "28"),
    Attribute("strike", "9", "29"),
    Attribute("underline2", "21", "24"),
    Attribute("frame", "51", "54"),
    Attribute("encircle", "52", "54"),
    Attribute("overline", "53", "55"),
)


class Look(NamedTuple):
    """Attributes as bits in the order of ATTRIBUTES, colours as SGR codes already fit for the terminal."""

    attributes: int
    foreground: str
    background: str


PLAIN = Look(0, DEFAULT_FOREGROUND, DEFAULT_BACKGROUND)

_SEEN_ON_A_BLANK = sum(
    1 << bit
    for bit, attribute in enumerate(ATTRIBUTES)
    if attribute.name in {"underline", "underline2", "overline", "strike", "reverse", "frame", "encircle"}
)


@lru_cache(maxsize=8192)
def look_of(style: Style | None, colours: ColorSystem) -> Look:
    """What Textual would write for the style. Links are left out: their target is text nobody has guarded."""
    if style is None:
        return PLAIN
    foreground = style.color and style.color.downgrade(colours).get_ansi_codes()
    background = style.bgcolor and style.bgcolor.downgrade(colours).get_ansi_codes(foreground=False)
    return Look(
        sum(1 << bit for bit, attribute in enumerate(ATTRIBUTES) if getattr(style, attribute.name)),
        ";".join(foreground or (DEFAULT_FOREGROUND,)),
        ";".join(background or (DEFAULT_BACKGROUND,)),
    )


def blank(look: Look) -> Look:
    """The look of a space: without an attribute that shows on it, only its background can be seen."""
    if look.attributes & _SEEN_ON_A_BLANK:
        return look
    return Look(0, DEFAULT_FOREGROUND, look.background)


def is_bare(look: Look) -> bool:
    """True when nothing but the background of a space shows."""
    return not look.attributes & _SEEN_ON_A_BLANK


def with_background_only(pen: Look, background: str) -> Look:
    """The pen nearest to this one that draws a bare space on the background."""
    return Look(pen.attributes & ~_SEEN_ON_A_BLANK, pen.foreground, background)


@lru_cache(maxsize=8192)
def change(before: Look | None, after: Look) -> str:
    """The shortest sequence that makes the pen `after`; `before` is None when nobody knows it."""
    if before == after:
        return ""
    anew = ["", *_on(after.attributes), *_colours(PLAIN, after)]
    if before is None:
        return _sgr(anew)
    return min(_sgr(_difference(before, after)), _sgr(anew), key=len)


def _difference(before: Look, after: Look) -> list[str]:
    ended = dict.fromkeys(
        attribute.off
        for bit, attribute in enumerate(ATTRIBUTES)
        if before.attributes & ~after.attributes & (1 << bit)
    )
    survivors = sum(1 << bit for bit, attribute in enumerate(ATTRIBUTES) if attribute.off not in ended)
    return [
        *ended,
        *_on(after.attributes & ~(before.attributes & survivors)),
        *_colours(before, after),
    ]


def _on(attributes: int) -> list[str]:
    return [attribute.on for bit, attribute in enumerate(ATTRIBUTES) if attributes & (1 << bit)]


def _colours(before: Look, after: Look) -> list[str]:
    return [
        new
        for old, new in ((before.foreground, after.foreground), (before.background, after.background))
        if old != new
    ]


def _sgr(codes: list[str]) -> str:
    return f"\x1b[{';'.join(codes)}m"

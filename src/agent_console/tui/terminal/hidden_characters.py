"""Characters that must never reach a terminal raw, and what is shown in their place.

Each stands for one visible cell: a C0 control becomes its control picture (ESC is `␛`), everything without a
picture of its own (C1, bidi controls, zero-width and tag characters, fillers, a flood of combining marks)
becomes `␦`, the symbol for a substituted character. One cell each, because an escape such as `\\x9b` would
push the columns of a table apart.
"""

import re
from functools import lru_cache

from rich.cells import cell_len, set_cell_size, split_graphemes

SUBSTITUTE = "␦"

# Vietnamese, Thai and pointed Hebrew need up to three or four marks on one letter; nobody writes five.
MARKS_ON_ONE_LETTER = 4

HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\xad\u034f\u061c\u070f\u08e2\u180e"  # soft hyphen, grapheme joiner, Arabic and Syriac format marks
    "\u0600-\u0605\u06dd\u0890\u0891"  # marks that enclose the digits after them
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers: letters that draw nothing
    "\u17b4\u17b5\u180b-\u180d\u180f"  # Khmer inherent vowels, Mongolian selectors
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # zero width, separators, bidi
    "\ufe00-\ufe0f\ufff0-\ufffb"  # variation selectors, annotations
    "\ud800-\udfff"  # surrogates can't be encoded at all
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags and the selectors that smuggle text
    "]"
)


def is_plain(text: str) -> bool:
    """True when every character is printable ASCII: nothing to guard, one cell each."""
    return text.isascii() and text.isprintable()


def picture(hidden: str) -> str:
    if hidden < "\x20":
        return chr(0x2400 + ord(hidden))
    return "␡" if hidden == "\x7f" else SUBSTITUTE


@lru_cache(maxsize=1024)
def shown(text: str) -> str:
    """The text with every hidden character visible, exactly as many cells wide as it was.

    Rich counts hidden characters as no cells, so what they now take is cut from the end: the columns and
    borders to the right stay where they are.
    """
    if is_plain(text):
        return text
    visible = HIDDEN.sub(lambda match: picture(match.group()), _without_floods(text))
    return text if visible == text else set_cell_size(visible, cell_len(text))


def glyphs(text: str) -> tuple[tuple[str, int], ...]:
    """The text as what stands in its cells, each with its width; one hidden character spoils its cell.

    What has no width of its own and follows no letter takes no cell and is left out: it would land on
    whatever the terminal drew before.
    """
    spans, _ = split_graphemes(text)
    return tuple((_guarded(text[start:end], width), width) for start, end, width in spans if width)


def _guarded(glyph: str, width: int) -> str:
    hidden = HIDDEN.search(glyph)
    if hidden is not None:
        return picture(hidden.group()).ljust(width)
    return SUBSTITUTE.ljust(width) if len(glyph) > 1 + MARKS_ON_ONE_LETTER else glyph


def _without_floods(text: str) -> str:
    spans, _ = split_graphemes(text)
    most = 1 + MARKS_ON_ONE_LETTER
    return "".join(
        SUBSTITUTE
        if not width and not HIDDEN.search(text, start, end)
        else text[start : start + most] + SUBSTITUTE
        if end - start > most and not HIDDEN.search(text, start, end)
        else text[start:end]
        for start, end, width in spans
    )

r"""The one gate between text that others wrote and the operator's terminal.

What may not reach a terminal is shown as a visible escape (`\x1b`, `\u202e`, `\U000e0041`), never sent and
never dropped. What passes is every printable character of Unicode, with four exceptions:

- only U+0020 is blank. No-break, ideographic and other spaces, fillers and the empty braille cell are always
  escaped: they could pad a line or make two names look alike;
- variation selectors, skin tones and regional indicators are escaped: how wide they are depends on their
  neighbours and on the terminal, and a terminal that disagrees moves everything after them;
- a mark may only sit on a character that is shown as itself, `MARKS_IN_A_ROW` at most; the rest is counted;
- emoji held together by joiners come apart, with the joiners visible.

A backslash that was in the text stays single: an escape can be imitated, which harms nobody.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, NewType

SafeText = NewType("SafeText", str)
"""Text that went through the gate. Only this module makes it."""

MARKS_IN_A_ROW = 4
BLANK_LINES_IN_A_ROW = 3
TAB_IN_A_BLOCK = "    "

# Printable by Unicode's word, yet empty or without a width of their own on a terminal.
_UNSHOWABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff]"
)
# Hangul vowels and finals are letters that take no cell of their own: they stack like marks.
_STACKING_LETTERS = "\u1161-\u11ff\ud7b0-\ud7c6\ud7cb-\ud7fb"
_ODD_LETTERS = "\u115f\u1160\u3164\uffa0\U00013441\U00013442" + _STACKING_LETTERS
_STACKING = re.compile(f"[{_STACKING_LETTERS}]")
# Everyday symbols of which each one is printable, visible and no mark.
_EVERYDAY = (
    " -~¡-¬®-˿\u2010-\u2027\u2030-\u205e\u2190-\u23ff\u2500-\u27ff\u3001-\u3029\uff01-\uff0f\U0001f400-\U0001f64f"
)
# \W holds every mark, control and unassigned character, so whole runs of any script pass without a look at
# each character; and the table of Unicode is never walked, which would cost the first screen 50 ms.
_ODD_RUN = re.compile(rf"(?:[\W{_ODD_LETTERS}](?<![{_EVERYDAY}]))++")
_SHORT_RUN = 8


class _Piece(NamedTuple):
    shown: str
    length: int
    """How many characters of the original it stands for."""
    plain: bool
    """Shown as it was, so it may be cut anywhere."""


class _Group(NamedTuple):
    """Neighbours of one sort: marks that stack, or characters that stand alone."""

    chars: str
    stacks: bool
    has_base: bool


def safe_text(text: str) -> SafeText:
    """Show any text on one line. A line break is shown as `⏎`, a tab as `\\t`."""
    if _is_plain_ascii(text):
        return SafeText(text)
    return SafeText(_ODD_RUN.sub(_shown_match, text))


def safe_block(text: str) -> tuple[SafeText, ...]:
    """Show any text on as many lines as it has.

    Tabs become spaces. A long run of blank lines is folded into one line that counts them, so that nothing
    can be pushed out of sight.
    """
    lines: list[SafeText] = []
    for blank, run in groupby(text.split("\n"), key=_is_blank):
        if blank:
            lines += _folded([SafeText("") for _ in run])
        else:
            lines += [safe_text(line.replace("\t", TAB_IN_A_BLOCK)) for line in run]
    return tuple(lines)


def shortened(text: str, limit: int) -> SafeText:
    """Show the beginning of a text on one line of at most `limit` characters.

    What is left out is counted ("… +N more") in characters of the original. The cost depends on the limit,
    not on the length of the text.
    """
    if limit < 1:
        raise ValueError("a text can't be shortened to less than one character")
    pieces = list(_pieces(text[:limit]))
    if len(text) <= limit and sum(len(piece.shown) for piece in pieces) <= limit:
        return SafeText("".join(piece.shown for piece in pieces))
    longest_note = _more(len(text))
    if len(longest_note) > limit:
        return SafeText("…")
    shown, used = _beginning(pieces, limit - len(longest_note))
    return SafeText(shown + _more(len(text) - used))


def _more(count: int) -> str:
    return f"… +{count} more"


def _beginning(pieces: list[_Piece], room: int) -> tuple[str, int]:
    shown: list[str] = []
    used = 0
    for piece in pieces:
        if len(piece.shown) > room:
            if piece.plain:
                shown.append(piece.shown[:room])
                used += room
            break
        shown.append(piece.shown)
        used += piece.length
        room -= len(piece.shown)
    return "".join(shown), used


def _is_plain_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


def _folded(blank_lines: list[SafeText]) -> list[SafeText]:
    hidden = len(blank_lines) - BLANK_LINES_IN_A_ROW
    if hidden <= 1:
        return blank_lines
    return [*blank_lines[:BLANK_LINES_IN_A_ROW], SafeText(f"…(+{hidden} blank lines)")]


def _pieces(text: str) -> Iterator[_Piece]:
    end = 0
    for odd in _ODD_RUN.finditer(text):
        yield _Piece(text[end : odd.start()], odd.start() - end, plain=True)
        for group in _groups(odd[0], carries_marks=odd.start() > 0):
            if group.stacks:
                yield _Piece(_shown_marks(group), len(group.chars), plain=False)
            else:
                yield from (_Piece(_shown(char), 1, plain=False) for char in group.chars)
        end = odd.end()
    yield _Piece(text[end:], len(text) - end, plain=True)


def _shown_match(odd: re.Match[str]) -> str:
    run = odd[0]
    show = _shown_short_run if len(run) <= _SHORT_RUN else _shown_run
    return show(run, odd.start() > 0)


def _shown_run(run: str, carries_marks: bool) -> str:
    return "".join(
        _shown_marks(group) if group.stacks else "".join(map(_shown, group.chars))
        for group in _groups(run, carries_marks=carries_marks)
    )


_shown_short_run = lru_cache(maxsize=4096)(_shown_run)


def _groups(run: str, *, carries_marks: bool) -> Iterator[_Group]:
    for stacks, group in groupby(run, key=_stacks):
        chars = "".join(group)
        yield _Group(chars, stacks, carries_marks)
        carries_marks = not stacks and _shown(chars[-1]) == chars[-1]


def _shown_marks(marks: _Group) -> str:
    """Marks with nothing of their own to sit on would change our words or the frame beside them."""
    first = marks.chars[:MARKS_IN_A_ROW]
    shown = first if marks.has_base else "".join(map(_escape, first))
    left_out = len(marks.chars) - MARKS_IN_A_ROW
    return f"{shown}…(+{left_out} marks)" if left_out > 0 else shown


@lru_cache(maxsize=4096)
def _stacks(char: str) -> bool:
    if unicodedata.category(char)[0] == "M":
        return not _UNSHOWABLE.match(char)
    return _STACKING.match(char) is not None


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    if char == "\n":
        return "⏎"
    return char if char.isprintable() and not _UNSHOWABLE.match(char) else _escape(char)


def _escape(char: str) -> str:
    named = {"\t": r"\t", "\r": r"\r"}.get(char)
    if named:
        return named
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

"""The difference between what the terminal shows and what it should show."""

import re

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

from agent_console.tui.terminal.cell_diff import CellDiff
from tests.tui_terminal.emulator import terminal

COLUMNS, LINES = 24, 3
TRUECOLOUR = ColorSystem.TRUECOLOR


def layout(*rows: str, style: str = "white on blue") -> LayoutUpdate:
    look = Style.parse(style)
    strips = [Strip([Segment(row, look)]).adjust_cell_length(COLUMNS, look) for row in rows]
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, COLUMNS, len(rows)))


def part(text: str, x: int, y: int = 0) -> ChopsUpdate:
    """An update of the cells of one row from x on, as the compositor makes it for a widget there."""
    strip = Strip([Segment(text, Style.parse("white on red"))])
    end = x + strip.cell_length
    cuts: list[dict[int, Strip | None]] = [{0: None, x: strip, end: None} for _ in range(LINES)]
    return ChopsUpdate(cuts, [(y, x, end)], [[x, end, COLUMNS] for _ in range(LINES)])


@pytest.fixture
def shadow() -> CellDiff:
    return CellDiff(erase_keeps_background=True)


def test_nothing_changed_is_nothing_sent(shadow: CellDiff) -> None:
    shadow.difference(layout("one", "two", "three"), TRUECOLOUR)

    again = shadow.difference(layout("one", "two", "three"), TRUECOLOUR)

    assert again == ""


def test_one_changed_cell_is_one_cell_sent(shadow: CellDiff) -> None:
    shadow.difference(layout("attempt 1", "two", "three"), TRUECOLOUR)

    sent = shadow.difference(layout("attempt 2", "two", "three"), TRUECOLOUR)

    assert sent == "\x1b[1;9H\x1b[37;44m2\x1b[m"


def test_blank_tails_are_erased_where_the_terminal_keeps_the_background() -> None:
    wide = CellDiff(erase_keeps_background=True).difference(layout("a", "b", "c"), TRUECOLOUR)
    spaces = CellDiff(erase_keeps_background=False).difference(layout("a", "b", "c"), TRUECOLOUR)

    assert wide.count("\x1b[K") == 3
    assert "\x1b[K" not in spaces
    assert spaces.count(" ") == 3 * (COLUMNS - 1)


@pytest.mark.parametrize("how", ["forget", "resize there and back"])
def test_after_the_terminal_lost_its_picture_all_is_sent_again(shadow: CellDiff, how: str) -> None:
    first = shadow.difference(layout("one", "two", "three"), TRUECOLOUR)

    if how == "forget":
        shadow.forget()
    else:
        shadow.resized(Size(COLUMNS - 1, LINES))
        shadow.resized(Size(COLUMNS, LINES))
    again = shadow.difference(layout("one", "two", "three"), TRUECOLOUR)

    assert again == first


@pytest.mark.parametrize("x", [1, 2, 3, 4])
def test_half_of_a_wide_character_is_never_left_over(shadow: CellDiff, x: int) -> None:
    """On a terminal that doesn't blank the other half by itself."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.Stream(screen)
    stream.feed(shadow.difference(layout("a漢字b", "", ""), TRUECOLOUR))

    stream.feed(shadow.difference(part("X", x), TRUECOLOUR))
    overwritten = screen.display[0].rstrip()
    repaired = shadow.difference(layout("a漢字b", "", ""), TRUECOLOUR)
    stream.feed(repaired)

    assert overwritten == {1: "aX 字b", 2: "a X字b", 3: "a漢X b", 4: "a漢 Xb"}[x]
    assert screen.display[0].rstrip() == "a漢字b"


@pytest.mark.parametrize("doubtful", ["🚀", "e\u0301"])
def test_the_cursor_is_placed_anew_where_terminals_disagree_on_a_width(shadow: CellDiff, doubtful: str) -> None:
    sent = shadow.difference(layout(f"{doubtful}漢a", "", ""), TRUECOLOUR)

    assert f"{doubtful}\x1b[{1 + cell_len(doubtful)}G漢a" in sent


HOSTILE = [
    "\x1b[2J",
    "\x07bell",
    "\x9b31m",
    "\x7f",
    "a\u202eb",
    "a\u200bb",
    "x\U000e0041",
    "e" + "\u0301" * 40,
    "\u0301" * 9,
    "\u200d\x1b]52;c;AA\x07",
    "\ud800",
    "漢\x1b字",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_cell_acts_on_the_terminal(shadow: CellDiff, text: str) -> None:
    sent = shadow.difference(layout(text, "plain", "plain"), TRUECOLOUR)

    bare = _without_our_own_sequences(sent)
    assert bare.isprintable()
    assert not any(mark in bare for mark in ("\u202e", "\u200b", "\U000e0041", "\u0301" * 5))
    bare.encode()


def test_what_replaces_a_hidden_character_is_as_wide_as_its_cell(shadow: CellDiff) -> None:
    screen, stream = terminal(COLUMNS, LINES)

    stream.feed(shadow.difference(layout("ab\x1bc|", "漢\x1b|", "e" + "\u0301" * 40 + "|"), TRUECOLOUR))

    assert [row.rstrip() for row in screen.text()] == ["a␛c|", "␛ |", "␦|"]


def test_a_link_is_plain_text(shadow: CellDiff) -> None:
    linked = Strip([Segment("see", Style(link="https://example.org/\x1b]52;c;AA\x07"))])

    sent = shadow.difference(LayoutUpdate([[linked]], Region(0, 0, 3, 1)), TRUECOLOUR)

    assert sent == "\x1b[1H\x1b[msee"


STYLES = ("white on blue", "bold red on blue", "underline green", "reverse cyan on black", "dim", "strike i")
runs = st.builds(str.__mul__, st.sampled_from("ab 漢é"), st.integers(1, COLUMNS))
texts = st.lists(runs, min_size=1).map(lambda found: "".join(found).ljust(COLUMNS))
rows = st.lists(st.tuples(texts, st.sampled_from(STYLES)), min_size=LINES, max_size=LINES)


@settings(max_examples=40, deadline=None)
@given(pictures=st.lists(rows, min_size=2, max_size=4), erase=st.booleans())
def test_any_row_of_pictures_ends_in_the_last_one(pictures: list[list[tuple[str, str]]], erase: bool) -> None:
    shadow = CellDiff(erase_keeps_background=erase)
    screen, stream = terminal(COLUMNS, LINES)
    fresh_screen, fresh_stream = terminal(COLUMNS, LINES)
    updates = [
        LayoutUpdate(
            [[Strip([Segment(text, Style.parse(style))]).crop(0, COLUMNS)] for text, style in picture],
            Region(0, 0, COLUMNS, LINES),
        )
        for picture in pictures
    ]

    for update in updates:
        stream.feed(shadow.difference(update, TRUECOLOUR))
    for y, ((_, style), row) in enumerate(zip(pictures[-1], updates[-1].strips, strict=True)):
        words = "".join(strip.text for strip in row)
        fresh_stream.feed(f"\x1b[{y + 1}H" + Style.parse(style).render(words))

    assert screen.seen() == fresh_screen.seen()


def _without_our_own_sequences(sent: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[HGCKXm]", "", sent)

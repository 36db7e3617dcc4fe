"""No line of any widget carries what could act on a terminal."""

import re
import sys
import unicodedata

import pytest
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.text import Text
from textual.app import App, ComposeResult
from textual.color import Color
from textual.widgets import Button, DataTable, Label, Log, OptionList, RichLog, Static, Tree

from agent_console.tui.terminal.hidden_characters import HIDDEN, shown
from agent_console.tui.terminal.line_guard import LineGuard
from agent_console.tui.terminal.terminal_app import TerminalApp

BLACK = Color(0, 0, 0)
HOSTILE = "a\x1b[2J\x9b31m\u202eb\u200bc\U000e0041d\x7f" + "e" + "\u0301" * 40


def guarded(text: str) -> str:
    return "".join(segment.text for segment in LineGuard().apply([Segment(text)], BLACK))


def test_plain_segments_pass_untouched() -> None:
    segment = Segment("plain [/] text")

    (passed,) = LineGuard().apply([segment], BLACK)

    assert passed is segment


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a\x1b[2Jb ", "a␛[2Jb"),
        ("bell\x07  ", "bell␇ "),
        ("c1\x9b  ", "c1␦ "),
        ("rtl\u202eabc   ", "rtl␦abc  "),
        ("zero\u200bwidth ", "zero␦width"),
        ("tag\U000e0041 ", "tag␦"),
        ("del\x7f ", "del␡"),
        ("né ÅÄÖ 漢字 ←→", "né ÅÄÖ 漢字 ←→"),
        ("e\u0301\u0323 stays", "e\u0301\u0323 stays"),
        ("e" + "\u0301" * 40 + "  ", "e" + "\u0301" * 4 + "␦ "),
        ("cut\x1b", "cut"),
    ],
    ids=ascii,
)
def test_what_is_hidden_is_shown_in_the_same_number_of_cells(text: str, visible: str) -> None:
    shown_text = guarded(text)

    assert shown_text == visible
    assert cell_len(shown_text) == cell_len(text)


def test_control_segments_are_dropped() -> None:
    control = Segment("\x1b[2J", None, [(ControlType.CLEAR,)])

    passed = LineGuard().apply([Segment("a"), control, Segment("b")], BLACK)

    assert [segment.text for segment in passed] == ["a", "b"]


def test_every_control_and_format_character_of_unicode_is_hidden() -> None:
    """Also in the Unicode of a newer Python; what is merely unassigned here may be an emoji there."""
    forbidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}

    missed = [
        f"{code:x}"
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in forbidden and not HIDDEN.match(chr(code))
    ]

    assert missed == []


def test_letters_of_living_scripts_are_left_alone() -> None:
    for text in ("Việt Nam", "ภาษาไทย", "שָׁלוֹם", "العربية", "हिन्दी", "한국어", "日本語", "⣿⡇ ▁▃▇ │─╮", "🚀"):
        assert shown(text) == text


class Paths(TerminalApp[None]):
    """Hostile text on the ways agents' words take into widgets."""

    def compose(self) -> ComposeResult:
        yield Static(Text(HOSTILE))
        yield Label(HOSTILE, markup=False)
        yield Button(Text(HOSTILE))
        yield OptionList(Text(HOSTILE))
        yield Tree[None](Text(HOSTILE))
        yield Log()
        yield RichLog()
        yield DataTable[Text]()

    def on_mount(self) -> None:
        self.query_one(Log).write_line(HOSTILE)
        self.query_one(RichLog).write(Text(HOSTILE))
        table = self.query_one(DataTable)
        table.add_column(Text(HOSTILE))
        table.add_row(Text(HOSTILE))
        for widget in self.query("Log, RichLog, OptionList, Tree, DataTable"):
            widget.border_title = "\\" + HOSTILE
            widget.styles.height = 5
            widget.styles.border = ("round", "red")
        self.notify(HOSTILE, title=HOSTILE, markup=False)


async def test_no_widget_lets_hidden_characters_into_a_picture() -> None:
    app: App[None] = Paths()

    async with app.run_test(size=(60, 60)) as pilot:
        await pilot.pause()
        picture = app.export_screenshot()

    assert "␛" in picture
    assert not re.search("[\x1b\x07\x7f\x9b\u202e\u200b\U000e0041]", picture)
    assert "\u0301" * 5 not in picture

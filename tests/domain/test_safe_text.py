import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_console
from agent_console.domain.safe_text import (
    BLANK_LINES_IN_A_ROW,
    MARKS_IN_A_ROW,
    safe_block,
    safe_text,
    shortened,
)
from tests.attacks.hostile_strings import dangers, is_dangerous

# `st.text()` leaves surrogates out; an agent does not.
ANY_TEXT = st.text(st.characters())
TRICKY = st.text(st.sampled_from("ae \n\t\r\x1b\x7f\x9b\u0301\u0336\u034f\u1161\u200d\u202e\ufe0f\ud800漢→👍"))


@given(ANY_TEXT | TRICKY)
def test_no_text_gets_a_danger_through_the_gate(text: str) -> None:
    shown = safe_text(text)

    assert dangers(shown) == []


def test_each_character_of_every_plane_is_shown_by_something_visible() -> None:
    scripts, ideographs_and_private_use = range(0x20000), range(0x20000, sys.maxunicode + 1, 61)
    tags_and_selectors = range(0xE0000, 0xE1000)
    codes = [*scripts, *ideographs_and_private_use, *tags_and_selectors]
    every = [chr(code) for code in codes if chr(code) != " "]

    shown = safe_text(" ".join(every))

    assert [char for char in set(shown) if is_dangerous(char)] == []
    assert [char for char, form in zip(every, shown.split(" "), strict=True) if not form] == []


@pytest.mark.parametrize(
    "text",
    [
        "job 42 failed: no such file /srv/data (errno 2)",
        "Größe überschritten, ça va — naïve… 20 €",
        "任务失败：文件不存在、「重试」",
        "ошибка → повтор ✓ ✗ │ ─ ● 👍",
        "नमस्ते สวัสดี שָׁלוֹם Việt",
        "e\u0301 and \u1112\u1161\u11ab",
        r"C:\new\x1b is a path",
    ],
)
def test_ordinary_words_of_any_script_pass_unchanged(text: str) -> None:
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\x7fb\x00", r"a\x7fb\x00"),
        ("no\ryes", r"no\ryes"),
        ("no\x08yes", r"no\x08yes"),
        ("a\tb", r"a\tb"),
        ("one\ntwo", "one⏎two"),
        ("one\u2028two", r"one\u2028two"),
        ("x\u202efdp", r"x\u202efdp"),
        ("at\u200blas\u00ad", r"at\u200blas\xad"),
        ("a\U000e0041", r"a\U000e0041"),
        ("a\u00a0b\u3000c\u2800d\u3164", r"a\xa0b\u3000c\u2800d\u3164"),
        ("⚠\ufe0f", r"⚠\ufe0f"),
        ("👩\u200d👧", r"👩\u200d👧"),
        ("👍\U0001f3fd", r"👍\U0001f3fd"),
        ("\ud800", r"\ud800"),
        ("\ue000\u0378", r"\ue000\u0378"),
    ],
)
def test_what_may_not_be_sent_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_a_tower_of_marks_is_cut_and_counted() -> None:
    tower = "e" + "\u0301" * 10_000

    shown = safe_text(tower)

    assert shown == "e" + "\u0301" * MARKS_IN_A_ROW + f"…(+{10_000 - MARKS_IN_A_ROW} marks)"


@pytest.mark.parametrize("text", ["\u0336x", "\x1b\u0336x", "\n\u0336x"])
def test_a_mark_never_sits_on_something_of_ours(text: str) -> None:
    shown = safe_text(text)

    assert shown.endswith(r"\u0336x")


def test_letters_without_a_cell_of_their_own_count_as_marks() -> None:
    shown = safe_text("\u1100" + "\u1161" * 500)

    assert shown == "\u1100" + "\u1161" * MARKS_IN_A_ROW + f"…(+{500 - MARKS_IN_A_ROW} marks)"


def test_a_block_keeps_its_lines_and_makes_tabs_spaces() -> None:
    text = "def f():\n\treturn 1\r\n\x1b[2J"

    lines = safe_block(text)

    assert lines == ("def f():", "    return 1\\r", r"\x1b[2J")


def test_a_mark_at_the_start_of_a_line_of_a_block_has_no_base() -> None:
    lines = safe_block("above\n\u0336below")

    assert lines[1] == r"\u0336below"


def test_blank_lines_cannot_push_the_end_out_of_sight() -> None:
    text = "approve\n" + " \t\n" * 400 + "delete everything"

    lines = safe_block(text)

    assert lines == (
        "approve",
        *[""] * BLANK_LINES_IN_A_ROW,
        f"…(+{400 - BLANK_LINES_IN_A_ROW} blank lines)",
        "delete everything",
    )


@given(ANY_TEXT | TRICKY)
def test_no_line_of_a_block_carries_a_danger(text: str) -> None:
    lines = safe_block(text)

    assert [found for line in lines for found in dangers(line)] == []


@given(ANY_TEXT | TRICKY, st.integers(1, 60))
def test_a_shortened_text_is_safe_and_keeps_its_limit(text: str, limit: int) -> None:
    shown = shortened(text, limit)

    assert (dangers(shown), len(shown) <= limit) == ([], True)


def test_a_text_that_fits_is_not_shortened() -> None:
    assert shortened("x\x1b", 5) == r"x\x1b"


@given(st.text("abc", min_size=41, max_size=5_000))
def test_a_shortened_text_counts_what_it_leaves_out(text: str) -> None:
    shown = shortened(text, 40)

    beginning, _, note = shown.partition("… +")
    count = re.fullmatch(r"(\d+) more", note)
    assert count and len(beginning) + int(count[1]) == len(text)


def test_an_escape_is_left_out_whole() -> None:
    shown = shortened("\x1b" * 50, 19)

    assert shown == r"\x1b\x1b" + "… +48 more"


def test_too_little_room_for_the_note_still_shows_that_something_is_missing() -> None:
    assert shortened("x" * 100, 3) == "…"


def test_no_room_at_all_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="less than one character"):
        shortened("x", 0)


def test_shortening_reads_no_further_than_the_limit() -> None:
    class CountingText(str):
        longest_slice = 0

        def __getitem__(self, key: object) -> str:
            assert isinstance(key, slice)
            part = str(self)[key]
            CountingText.longest_slice = max(CountingText.longest_slice, len(part))
            return part

    shown = shortened(CountingText("\u0301" * 1_000_000), 80)

    assert (CountingText.longest_slice, len(shown) <= 80) == (80, True)


def test_the_oracle_of_these_tests_knows_what_is_dangerous() -> None:
    tower = "e" + "\u0301" * (MARKS_IN_A_ROW + 1)

    found = dangers("\x1b\x9b\u202e\u200b\U000e0041\u00a0\ufe0f" + tower)

    assert len(found) == 8


def test_only_the_gate_makes_safe_text() -> None:
    source = Path(agent_console.__file__).parent

    makers = [path.name for path in source.rglob("*.py") if re.search(r"\bSafeText\(", path.read_text("utf-8"))]

    assert makers == ["safe_text.py"]

"""How a line of the table reads: on any width, with any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from agent_console.tui.widgets.rows import ListSource, Row
from agent_console.tui.widgets.virtual_table_columns import Column, place_columns
from agent_console.tui.widgets.virtual_table_lines import fit, header_text
from tests.tui_widgets.virtual_table_stage import COLUMNS, JobList, jobs

SCREEN = (80, 24)


@pytest.mark.parametrize(
    ("text", "align", "shown"),
    [
        ("atlas", "left", "atlas   "),
        ("42", "right", "      42"),
        ("a long name", "left", "a long …"),
        ("日本語日本語", "left", "日本語 …"),
        ("x日本語日本", "left", "x日本語…"),
        ("two\nlines", "left", "two␊lin…"),
        ("[/][@click]", "left", "[/][@cl…"),
    ],
)
def test_a_cell_is_cut_and_filled_by_what_it_takes_on_the_screen(text: str, align: str, shown: str) -> None:
    fitted = fit(Content(text), 8, "right" if align == "right" else "left")

    assert fitted.plain == shown
    assert cell_len(fitted.plain) == 8


@given(st.text(alphabet=st.sampled_from("a é日語👩\u200d\ufe0f\u0301🇩🇪❤\u200b한\u1100\u1161\t\x1b"), max_size=14))
def test_no_text_makes_a_cell_wider_than_its_column(text: str) -> None:
    fitted = fit(Content(text, strip_control_codes=False), 5)

    assert cell_len(fitted.plain) == 5


def test_a_style_stays_on_its_words_when_a_cell_is_aligned_and_cut() -> None:
    cell = Content.assemble(("42", "red"), " of 100")

    fitted = fit(cell, 9, "right")
    cut = fit(cell, 4)

    assert [(span.start, span.end) for span in fitted.spans] == [(0, 2)]
    assert (cut.plain, [(span.start, span.end) for span in cut.spans]) == ("42 …", [(0, 2)])


@pytest.mark.parametrize(
    ("width", "placed"),
    [
        pytest.param(120, [("id", 3, 10), ("type", 14, 86), ("agent", 101, 12), ("age", 114, 6)], id="wide"),
        pytest.param(80, [("id", 3, 10), ("type", 14, 46), ("agent", 61, 12), ("age", 74, 6)], id="80"),
        pytest.param(40, [("id", 3, 10), ("type", 14, 13), ("agent", 28, 12)], id="age dropped"),
        pytest.param(30, [("id", 3, 10), ("type", 14, 16)], id="agent dropped too"),
        pytest.param(18, [("id", 3, 6), ("type", 10, 8)], id="narrowed"),
        pytest.param(5, [("id", 3, 4), ("type", 8, 8)], id="no narrower than it is readable"),
    ],
)
def test_columns_are_placed_by_the_width_alone(width: int, placed: list[tuple[str, int, int]]) -> None:
    columns = place_columns(COLUMNS, width)

    assert [(column.column.key, column.x, column.width) for column in columns] == placed


def test_a_column_that_may_be_narrowed_gives_way_before_its_neighbour_leaves_the_screen() -> None:
    columns = (Column("reason", "Reason", None, min_width=24, narrow_to=10), Column("age", "Age", 7, min_width=7))

    placed = place_columns(columns, 25)

    assert [(column.x, column.width) for column in placed] == [(3, 14), (18, 7)]


def test_remaining_room_is_shared() -> None:
    columns = (Column("from", "From", None), Column("to", "To", None), Column("hops", "Hops", 4))

    placed = place_columns(columns, 30)

    assert [column.width for column in placed] == [11, 10, 4]


def test_a_title_is_cut_where_its_column_ends() -> None:
    columns = (Column("job", "Job", 3), Column("created", "Created at", 8, align="right"))

    shown = header_text(place_columns(columns, 15))

    assert shown.plain == "   Job Created…"


async def test_a_narrow_terminal_drops_columns_and_a_wide_one_brings_them_back() -> None:
    app = JobList(jobs(0))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.resize_terminal(33, 10)
        await pilot.pause()
        narrow = app.table.lines()[:2]

        await pilot.resize_terminal(80, 24)
        await pilot.pause()

        assert [line.split() for line in narrow] == [["Job", "Type"], ["▸", "job_0", "report"]]
        assert app.table.lines()[0].split() == ["Job", "Type", "Agent", "Age"]


async def test_an_empty_list_says_so_in_the_middle() -> None:
    app = JobList(jobs())
    async with app.run_test(size=(41, 8)) as pilot:
        await pilot.pause()
        shown = app.table.lines()

        app.table.empty = Content("Loading")
        await pilot.pause()

        assert shown[1:] == ["", "", "", " " * 11 + "No jobs match [/]", "", "", ""]
        assert app.table.lines()[4].strip() == "Loading"


async def test_hostile_cells_are_shown_as_they_are_and_can_not_be_clicked() -> None:
    name = Content("[/] [@click=app.bell]x").stylize("@click=app.bell underline")
    broken = Content("no such style").stylize("$nothing [/]")
    app = JobList(ListSource([Row("job_0", (Content("[/]"), name, broken))]))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()

        line = app.table.strips()[1]

        assert line.text.split() == ["▸", "[/]", "[/]", "[@click=app.bell]x", "no", "such", "sty…"]
        assert [segment.style.meta for segment in line if segment.style] == [{}] * len(line)
        assert any(segment.style.underline for segment in line if segment.style)


async def test_stale_rows_are_dim_and_the_header_is_not() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        fresh = app.table.strips()

        app.table.stale = True
        await pilot.pause()

        assert [line == before for line, before in zip(app.table.strips(), fresh, strict=True)][:3] == [
            True,
            False,
            False,
        ]
        assert all(segment.style and segment.style.dim for segment in app.table.render_line(2))


async def test_the_cursor_looks_different_when_the_keys_go_elsewhere() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.focus()
        await pilot.pause()
        focused = app.table.strips()[1]

        app.set_focus(None)
        await pilot.pause()

        assert focused != app.table.strips()[1]
        assert focused.text == app.table.strips()[1].text

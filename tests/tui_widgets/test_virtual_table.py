"""Law 1: cursor, scroll and marks belong to rows, not to line numbers."""

from __future__ import annotations

import pytest
from textual import events
from textual.geometry import Offset

from agent_console.tui.widgets.rows import ListSource, Row
from agent_console.tui.widgets.virtual_table import MARK_ALL_LIMIT
from agent_console.tui.widgets.virtual_table_messages import (
    CursorMoved,
    MarksChanged,
    NearEnd,
    RowChosen,
    TooManyToMark,
)
from tests.tui_widgets.virtual_table_stage import CountedSource, JobList, job, jobs

SCREEN = (80, 24)
PAGE = 23


@pytest.mark.parametrize(
    ("refreshed", "index"),
    [
        pytest.param((9, 8, 0, 1, 2, 3, 4), 4, id="inserted above"),
        pytest.param((2, 3, 4), 0, id="deleted above"),
        pytest.param((4, 3, 2, 1, 0), 2, id="reversed"),
        pytest.param((2,), 0, id="alone"),
    ],
)
async def test_the_cursor_follows_its_row(refreshed: tuple[int, ...], index: int) -> None:
    app = JobList(jobs(0, 1, 2, 3, 4))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down", "down")

        app.table.show(jobs(*refreshed))
        await pilot.pause()

        assert (app.table.cursor_id, app.table.cursor_index) == ("job_2", index)
        assert app.moves()[-1] == ("job_2", None)


async def test_the_cursor_row_keeps_its_screen_line() -> None:
    app = JobList(jobs(*range(100, 200)))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.move_to("job_150")
        await pilot.press("up", "up", "up")
        before = app.table.screen_line_of("▸")

        app.table.show(jobs(*range(60, 120), *range(130, 200)))
        await pilot.pause()

        assert app.table.lines()[before].startswith("▸  job_147")


async def test_a_vanished_row_hands_the_cursor_to_its_neighbour_and_says_so() -> None:
    app = JobList(jobs(0, 1, 2, 3, 4))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down", "down")

        app.table.show(jobs(7, 8, 9, 0, 1, 3, 4))
        await pilot.pause()

        assert app.table.cursor_id == "job_3"
        assert app.moves()[-1] == ("job_3", "job_2")


async def test_the_last_row_vanishing_leaves_the_cursor_on_the_new_last() -> None:
    app = JobList(jobs(0, 1, 2))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("end")

        app.table.show(jobs(0, 1))
        await pilot.pause()

        assert app.moves()[-1] == ("job_1", "job_2")


async def test_a_list_that_empties_leaves_no_cursor_and_fills_again_from_the_top() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.show(jobs())
        await pilot.pause()
        emptied = (app.table.cursor_id, app.table.cursor_index)

        app.table.show(jobs(5, 6))
        await pilot.pause()

        assert emptied == (None, None)
        assert app.moves() == [("job_0", None), (None, "job_0"), ("job_5", None)]


async def test_a_table_filled_before_it_is_on_the_screen_tells_its_cursor_once() -> None:
    app = JobList(jobs(0, 1))
    app.table.show(jobs(1, 2))

    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()

    assert app.moves() == [("job_1", None)]


async def test_marks_survive_every_order_and_leave_with_their_row() -> None:
    app = JobList(jobs(0, 1, 2, 3))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("space", "space")

        app.table.show(jobs(3, 2, 1, 0))
        after_reorder = app.table.marks
        app.table.show(jobs(3, 2, 1))
        await pilot.pause()

        assert after_reorder == {"job_0", "job_1"}
        assert app.table.marks == {"job_1"}
        told = [message.marks for message in app.heard if isinstance(message, MarksChanged)]
        assert told[-1] == {"job_1"}


async def test_space_marks_and_moves_down_and_takes_the_mark_off_again() -> None:
    app = JobList(jobs(0, 1, 2))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("space")
        marked = app.table.lines()[1:3]

        await pilot.press("up", "space")

        assert marked == [
            " ● job_0      report                                        atlas             0",
            "▸  job_1      report                                        atlas             1",
        ]
        assert app.table.marks == frozenset()


async def test_a_star_marks_all_and_then_none() -> None:
    app = JobList(jobs(0, 1, 2))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("space", "*")
        marked = app.table.marks

        await pilot.press("*")

        assert marked == {"job_0", "job_1", "job_2"}
        assert app.table.marks == frozenset()


async def test_a_list_too_long_to_mark_is_not_marked_in_part() -> None:
    app = JobList(CountedSource(MARK_ALL_LIMIT + 1))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("*")

        assert app.table.marks == frozenset()
        assert app.count(TooManyToMark) == 1


@pytest.mark.parametrize(
    ("keys", "row_id"),
    [
        (("down", "j"), "job_2"),
        (("j", "j", "k", "up"), "job_0"),
        (("pagedown",), f"job_{PAGE}"),
        (("pagedown", "down", "pageup"), "job_1"),
        (("end",), "job_99"),
        (("G", "g"), "job_0"),
        (("end", "down", "home", "up"), "job_0"),
    ],
)
async def test_keys_move_the_cursor(keys: tuple[str, ...], row_id: str) -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press(*keys)

        assert app.table.cursor_id == row_id
        assert "▸" in "".join(app.table.lines())


async def test_keys_on_an_empty_list_do_nothing() -> None:
    app = JobList(jobs())
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down", "up", "end", "home", "pagedown", "pageup", "space", "*", "enter")

        assert app.heard == []


async def test_every_key_can_be_remapped() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        app.set_keymap({"table.down": "n"})

        await pilot.press("down", "j", "n")

        assert app.table.cursor_id == "job_1"
        assert all(shown.binding.id for shown in app.active_bindings.values() if shown.node is app.table)


async def test_enter_chooses_the_row_under_the_cursor() -> None:
    app = JobList(jobs(0, 1, 2))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down", "enter")

        chosen = [message.row_id for message in app.heard if isinstance(message, RowChosen)]
        assert chosen == ["job_1"]


async def test_a_click_takes_the_row_that_was_painted_there() -> None:
    app = JobList(jobs(0, 1, 2, 3))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.click("#jobs", offset=Offset(5, 3))
        clicked = app.table.cursor_id
        await pilot.click("#jobs", offset=Offset(5, 0))
        await pilot.click("#jobs", offset=Offset(5, 20))

        assert clicked == "job_2"
        assert app.table.cursor_id == "job_2"


async def test_a_click_on_a_row_that_moved_meanwhile_takes_the_row_that_was_seen() -> None:
    app = JobList(jobs(0, 1, 2, 3))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        click = events.Click(app.table, 5, 3, 0, 0, 1, False, False, False, 5, 3)

        app.table.show(jobs(0, 3, 1, 2))
        app.table.on_click(click)

        assert app.table.cursor_id == "job_2"


async def test_the_wheel_scrolls_and_brings_the_cursor_along() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        turn = events.MouseScrollDown(app.table, 5, 3, 0, 1, 0, False, False, False, 5, 3)

        app.table.post_message(turn)
        await pilot.pause()

        assert app.table.scroll_offset.y == app.scroll_sensitivity_y
        assert app.table.lines()[1].startswith(f"▸  job_{app.table.scroll_offset.y}")


async def test_scrolling_brings_the_cursor_along_so_that_it_is_always_seen() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.scroll_to(y=40, animate=False)
        await pilot.pause()

        assert app.table.cursor_id == "job_40"
        assert app.table.lines()[1].startswith("▸  job_40")


async def test_a_smaller_terminal_keeps_the_cursor_on_the_screen() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.move_to("job_22")

        await pilot.resize_terminal(60, 12)
        await pilot.pause()

        assert app.table.cursor_id == "job_22"
        assert app.table.lines()[-1].startswith("▸  job_22")


async def test_the_end_is_told_when_it_is_a_page_away() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.move_to(f"job_{99 - PAGE - 1}")
        await pilot.pause()
        early = app.count(NearEnd)

        await pilot.press("down")

        assert (early, app.count(NearEnd)) == (0, 1)


async def test_the_end_is_told_once_for_each_source() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("end", "home", "end")
        first = app.count(NearEnd)

        app.table.show(jobs(*range(200)))
        await pilot.press("end", "home")

        assert (first, app.count(NearEnd)) == (1, 2)


async def test_a_list_shorter_than_the_screen_is_near_its_end_at_once() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()

        assert app.count(NearEnd) == 1


async def test_a_held_key_leaves_only_its_last_position_but_never_hides_a_vanished_row() -> None:
    app = JobList(jobs(0))
    other = JobList(jobs(0))
    passing = CursorMoved(app.table, "job_1")
    vanished = CursorMoved(app.table, "job_2", vanished_id="job_1")

    latest = CursorMoved(app.table, "job_3")

    assert passing.can_replace(latest)
    assert not vanished.can_replace(latest)
    assert not passing.can_replace(CursorMoved(other.table, "job_3"))


def test_a_row_on_two_pages_is_shown_once() -> None:
    source = ListSource([job(0), job(1), job(0, "moved"), Row("job_2", ())])

    assert len(source) == 3
    assert source.row_at(0).cells[1].plain == "report"
    assert [source.index_of(row_id) for row_id in ("job_0", "job_2", "job_9")] == [0, 2, None]

"""Laws 7 and 8: a million rows cost what a screen costs, and what did not change is not painted."""

from __future__ import annotations

import random

from textual import on
from textual.content import Content
from textual.geometry import Region

from agent_console.tui.widgets.rows import ListSource, Row
from agent_console.tui.widgets.virtual_table_messages import CursorMoved
from tests.tui_console.stage import until
from tests.tui_widgets.virtual_table_stage import CountedSource, JobList, job, jobs

SCREEN = (80, 24)
PAGE = 23
MILLION = 1_000_000


class Uncompared(Content):
    """Counts how often somebody has to read it to know what it says."""

    compared = 0

    def is_same(self, content: Content) -> bool:
        Uncompared.compared += 1
        return super().is_same(content)


def uncompared(number: int) -> Row:
    return Row(f"job_{number}", (Uncompared(f"job_{number}"), Uncompared("report")))


class Listening(JobList):
    """Remembers what was painted when it heard that the cursor has moved."""

    painted_when_told: tuple[int, ...] = ()

    @on(CursorMoved)
    def look(self) -> None:
        self.painted_when_told = (*self.table.rendered,)


async def test_a_million_rows_ask_only_for_what_is_on_the_screen() -> None:
    source = CountedSource(MILLION)
    app = JobList(source)
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        to_get_ready, source.asked = source.asked, 0

        keys = ("down", "pagedown", "end", "home", "pagedown", "up")
        await pilot.press(*keys)

        assert to_get_ready <= 6 * PAGE
        assert source.asked <= len(keys) * 6 * PAGE


async def test_showing_another_million_asks_only_for_what_is_on_the_screen() -> None:
    app = JobList(CountedSource(MILLION))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("end")

        refreshed = CountedSource(MILLION - 1)
        app.table.show(refreshed)
        await pilot.pause()

        assert app.table.cursor_id == f"job_{MILLION - 2}"
        assert refreshed.asked <= 6 * PAGE


async def test_the_same_rows_again_paint_nothing() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("pagedown", "space")
        app.table.forget_paints()

        app.table.show(jobs(*range(100)))
        await pilot.pause()

        assert (app.table.repaints, app.table.rendered) == ([], [])


async def test_rows_arriving_off_the_screen_paint_nothing() -> None:
    app = JobList(jobs(*range(100, 200)))
    async with app.run_test(size=SCREEN) as pilot:
        app.table.move_to("job_150")
        await pilot.pause()
        app.table.forget_paints()

        app.table.show(jobs(*range(91, 203)))
        await pilot.pause()

        assert (app.table.repaints, app.table.rendered) == ([], [])
        assert app.table.vertical_scrollbar.window_virtual_size == 113


async def test_a_changed_cell_paints_that_cell() -> None:
    app = JobList(jobs(*range(30)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        app.table.forget_paints()

        app.table.show(ListSource(job(n, "billing" if n == 4 else "report") for n in range(30)))
        await pilot.pause()

        assert app.table.repaints == [(Region(14, 5, 45, 1),)]
        assert app.table.lines()[5].split() == ["job_4", "billing", "atlas", "4"]


async def test_a_changed_colour_is_a_change() -> None:
    app = JobList(jobs(0, 1))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        app.table.forget_paints()

        app.table.show(ListSource([job(0), job(1, style="red")]))
        await pilot.pause()

        assert app.table.rendered == [2]


async def test_a_move_of_the_cursor_paints_two_lines() -> None:
    app = JobList(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down")
        app.table.forget_paints()

        await pilot.press("down")

        assert sorted(app.table.rendered) == [2, 3]


async def test_a_move_of_the_cursor_looks_at_no_other_row() -> None:
    source = CountedSource(MILLION)
    app = JobList(source)
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.press("down")
        source.asked = 0

        await pilot.press("down")

        # Where it goes; the two lines to compare; the two lines to paint.
        assert source.asked <= 5


async def test_a_row_made_anew_that_reads_the_same_is_known_from_then_on() -> None:
    app = JobList(ListSource([uncompared(0), uncompared(1)]))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        again = ListSource([uncompared(0), uncompared(1)])
        app.table.show(again)
        Uncompared.compared = 0

        app.table.show(again)

        assert Uncompared.compared == 0


async def test_the_cursor_is_painted_before_anybody_is_told_of_it() -> None:
    app = Listening(jobs(*range(100)))
    async with app.run_test(size=SCREEN) as pilot:
        await pilot.pause()
        app.heard.clear()
        app.table.forget_paints()

        app.table.action_cursor_down()
        app.table.action_cursor_down()
        await until(lambda: app.moves() != [], "that the cursor has moved")

        assert {1, 3} <= {*app.painted_when_told}
        assert app.moves() == [("job_2", None)]


async def test_painting_only_changes_gives_the_same_screen_as_painting_all() -> None:
    app = JobList(jobs(*range(40)))
    chance = random.Random(3)
    keys = ("down", "up", "pagedown", "pageup", "space", "end", "home")
    async with app.run_test(size=SCREEN) as pilot:
        for _ in range(10):
            numbers = chance.sample(range(60), chance.randint(0, 50))
            app.table.show(ListSource(job(n, chance.choice(("report", "billing"))) for n in numbers))
            await pilot.press(chance.choice(keys))
            painted = app.table.strips()

            app.table.refresh()
            await pilot.pause()

            assert painted == app.table.strips()

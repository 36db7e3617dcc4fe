"""Long lists come page by page, and nothing of them is missed."""

import pytest
from textual.pilot import Pilot

from agent_console.tui.link import Opening
from agent_console.tui.panes.list_pane import ListPane
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    all_jobs,
    app_of,
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    until,
)


def heading(pane: ListPane) -> str:
    return str(pane.query_one(".heading").render())


async def go_on(pilot: Pilot[None], key: str) -> None:
    """Press the key; on the last row known so far, wait for more of the list first."""
    table = list_of(app_of(pilot)).table
    known = len(table.source)
    if table.cursor_index == known - 1:
        await until(lambda: len(table.source) > known, f"more than {known} rows")
    await pilot.press(key)


async def reach_the_end(opening: Opening, fleet: Fleet, key: str) -> None:
    fleet.add_jobs(1000)
    expected = all_jobs(fleet)
    app = console(opening)
    async with app.run_test(size=(80, 60)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        assert len(row_ids(list_of(app))) < len(expected)

        while list_of(app).table.cursor_id != expected[-1]:
            await go_on(pilot, key)

        assert row_ids(list_of(app)) == expected
        assert "1,025 all jobs" in heading(list_of(app))


async def test_every_job_of_a_long_list_is_reached_in_order(opening: Opening, fleet: Fleet) -> None:
    await reach_the_end(opening, fleet, "end")


async def test_every_job_of_a_long_list_is_reached_page_by_page(fleet: Fleet) -> None:
    await reach_the_end(directly(fleet.working), fleet, "pagedown")


@pytest.mark.usefixtures("nobody_looks_again")
async def test_rows_that_come_into_sight_are_looked_at_again(fleet: Fleet) -> None:
    fleet.add_jobs(200)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "end")
        await until(lambda: len(row_ids(list_of(app))) == 225, "the whole list")
        await press(pilot, "home")
        last = row_ids(list_of(app))[-1]
        fleet.execute("update jobs set priority = 99")

        await press(pilot, "end")

        await until(lambda: cells(list_of(app), last)[5] == "99", "the last job as it is now")


async def test_a_list_that_is_not_known_to_its_end_says_so(opening: Opening, fleet: Fleet) -> None:
    fleet.add_jobs(1000)
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")

        assert "+ all jobs" in heading(list_of(app))

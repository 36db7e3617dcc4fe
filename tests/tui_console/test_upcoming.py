"""Upcoming jobs: a list of their own, counted down."""

from datetime import timedelta

import pytest

from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    SteppingClock,
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
)


@pytest.mark.rule("U000-37")
async def test_only_what_is_scheduled_is_listed_and_counted_down(fleet: Fleet) -> None:
    clock = SteppingClock(AT)
    app = console(directly(fleet.working), clock=clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "u")
        await until(lambda: list_of(app).kind.name == "upcoming", "the upcoming jobs")
        await press(pilot, "r")
        soonest = row_ids(list_of(app))[0]
        assert [cells(list_of(app), job)[0] for job in row_ids(list_of(app))] == ["in 1h 30m", "in 1d"]

        clock.now = AT + timedelta(minutes=89, seconds=30)

        await until(lambda: cells(list_of(app), soonest)[0] == "in 30s", "the countdown")
        assert "2099-03-01 04:30" in shown_text(app)


async def test_escape_leads_back_to_the_queue(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "u")
        await until(lambda: list_of(app).kind.name == "upcoming", "the upcoming jobs")

        await press(pilot, "escape")

        assert list_of(app).kind.name == "jobs"

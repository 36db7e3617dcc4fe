"""The tour: six steps through the panes, which change nothing and hide nothing."""

import pytest
from textual.widgets import ContentSwitcher, Static

from agent_console.tui.app import ConsoleApp
from agent_console.tui.tour import STEPS, TourScreen
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    console,
    directly,
    has_list,
    list_of,
    loaded,
    press,
    shown_text,
    until,
    until_on,
)

NARROW, USUAL = (60, 20), (80, 24)


def uncovered(app: ConsoleApp) -> bool:
    """Whether the box begins where the pane ends, and says all it has to say."""
    box = app.screen.query_one("#tour", Static)
    below = app.screen_stack[0].query_one(ContentSwitcher)
    return below.region.bottom <= box.region.y and "Esc leaves" in shown_text(app)


@pytest.mark.parametrize("size", [NARROW], ids=lambda size: "{}x{}".format(*size))
async def test_six_steps_lead_through_the_panes_and_leave_everything_as_it_was(
    story: Fleet, size: tuple[int, int]
) -> None:
    app = console(directly(story.working))
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        height = list_of(app).table.size.height

        await press(pilot, "question_mark", "t")
        seen = []
        for step in STEPS:
            await until_on(app, TourScreen)
            await until(lambda: has_list(app) and uncovered(app), f"{step.title} lies beside the pane")
            seen.append((app.pane.pane_name, step.title in shown_text(app)))
            # None of these may do anything here: they act on rows, or lead away.
            await pilot.press("a", "d", "1", "slash", "colon", "question_mark")
            assert len(app.screen_stack) == 2
            await pilot.press("enter")
        await until(lambda: len(app.screen_stack) == 1, "the tour is over")
        await press(pilot, "2")

        assert seen == [(step.pane, True) for step in STEPS]
        assert len(STEPS) == 6
        assert list_of(app).table.size.height == height


async def test_one_can_go_back_and_leave_at_every_step(story: Fleet) -> None:
    app = console(directly(story.working))
    async with app.run_test(size=USUAL) as pilot:
        await loaded(pilot)
        await press(pilot, "question_mark", "t", "enter", "enter", "left")
        await until_on(app, TourScreen)
        back_at = app.pane.pane_name

        await press(pilot, "escape")

        assert (back_at, len(app.screen_stack)) == ("approvals", 1)
        assert app.focused is not None
        assert app.pane in app.focused.ancestors
        await press(pilot, "3")
        assert app.pane.pane_name == "jobs"

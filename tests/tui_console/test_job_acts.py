"""What can be done to a job is what fits it as it is."""

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from agent_console.domain.ids import JobId
from agent_console.domain.permissions import Permission, Role
from agent_console.repository.operations import OPERATIONS
from agent_console.tui.actions import list_actions, row_actions
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.doing import NOT_AS_IT_IS
from agent_console.tui.panes.derived import listing_of
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    all_jobs,
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    shown_text,
    until,
    until_on,
)

FITTING = {
    "queued": ["jobs.cancel", "jobs.reprioritise", "jobs.rebind"],
    "scheduled": ["jobs.cancel", "jobs.reprioritise", "jobs.rebind"],
    "assigned": ["jobs.cancel"],
    "running": ["jobs.cancel"],
    "failed": ["jobs.retry"],
    "dead_letter": ["jobs.retry"],
    "cancelled": ["jobs.retry"],
}
LISTS = sorted({operation.noun for operation in OPERATIONS if operation.action == "list"})


def offered(app: ConsoleApp) -> list[str]:
    menu = app.screen.query_one(OptionList)
    return [str(menu.get_option_at_index(place).id) for place in range(menu.option_count)]


async def stand_on(app: ConsoleApp, pilot: Pilot[None], job_id: JobId) -> None:
    assert list_of(app).table.move_to(str(job_id))
    await pilot.pause()


@pytest.mark.rule("U000-35")
async def test_a_job_offers_what_fits_its_state(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        running = fleet.first_job("running")
        assert cells(list_of(app), str(running))[2] in shown_text(app)
        assert cells(list_of(app), str(running))[2]

        for state, acts in FITTING.items():
            await stand_on(app, pilot, fleet.first_job(state))
            await pilot.press("a")
            await until_on(app, ActionMenu)

            assert offered(app) == acts, state

            await pilot.press("escape")
            await until(lambda: len(app.screen_stack) == 1, "the list again")


async def test_of_a_job_that_went_well_it_is_said_that_nothing_is_to_be_done(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        await stand_on(app, pilot, fleet.first_job("succeeded"))

        await pilot.press("a")

        await until(lambda: NOT_AS_IT_IS in [note.message for note in app._notifications], "a word about it")
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.VIEWER])
def test_what_agents_do_is_offered_to_nobody_else(role: Role) -> None:
    listings = [listing_of(noun) for noun in LISTS]

    reachable = [
        action.operation
        for listing in listings
        for action in (
            *row_actions(listing, role),
            *list_actions(listing, role),
        )
    ]

    assert [operation.name for operation in reachable if operation.permission is Permission.ACT_AS_AGENT] == []


@pytest.mark.rule("U000-35")
async def test_a_failed_job_is_tried_again_from_its_detail(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        failed = fleet.first_job("failed")
        await stand_on(app, pilot, failed)
        await press(pilot, "enter")

        await pilot.press("a")
        await until_on(app, ActionMenu)
        await pilot.press("enter")
        await until_on(app, OperationForm)
        assert str(failed) in shown_text(app)
        await pilot.press("enter")

        await until(lambda: app.screen is app.detail, "the detail again")
        assert fleet.one("select count(*) from jobs where parent_job_id = %s", failed) == 1


async def test_a_key_pressed_twice_opens_one_menu(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        list_of(app).action_act()
        list_of(app).action_act()
        await until_on(app, ActionMenu)
        await pilot.pause()

        assert len(app.screen_stack) == 2


@pytest.mark.rule("U000-36")
async def test_a_new_job_that_nobody_could_take_warns_and_says_why(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        before = len(all_jobs(fleet))
        await pilot.press("n")
        await until_on(app, ActionMenu)
        assert offered(app)[0] == "jobs.create"
        await pilot.press("enter")
        await until_on(app, OperationForm)
        for name, words in {"type": "x", "payload": "{}", "required_capabilities": "tool:crystal_ball"}.items():
            app.screen.query_one(f"#field-{name}", Input).value = words
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(
            lambda: any("No agent has tool:crystal_ball" in note.message for note in app._notifications), "why"
        )
        assert len(all_jobs(fleet)) == before + 1


async def test_pausing_is_found_from_the_footer(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        footer = shown_text(app).splitlines()[-1]
        assert "n Queue…" in footer
        assert "q Quit" in footer

        await pilot.press("n")
        await until_on(app, ActionMenu)

        assert {"queue.pause", "queue.resume", "jobs.create"} <= set(offered(app))
        assert "the queue itself (pause, resume)" in shown_text(app)

"""Menus, forms and secrets: what stands over a list while something is done."""

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.dialogs.secret_screen import SecretScreen
from tests.snapshots.conftest import NARROW, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import Fleet
from tests.tui_console.stage import choose, console, directly, loaded, until, until_on

SECRET = "art_key_7Zq2mXw9cR4tLk1vB8nYs5dHf3jGp6aE"


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_what_can_be_done_to_an_agent(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await pilot.press("a")
        await until_on(app, ActionMenu)

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=size, run_before=story)


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_a_form_with_a_mistake(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await choose(app, pilot, "a", "agents.drain")
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")
        problem = app.screen.query_one("#problem-reason", Static)
        await until(lambda: bool(str(problem.content)), "the reason is asked for")

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=size, run_before=story)


def test_a_long_form(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await pilot.press("3")
        await choose(app, pilot, "n", "jobs.create")

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=USUAL, run_before=story)


def test_a_danger_asks_for_another_key(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await choose(app, pilot, "a", "agents.revoke")
        app.screen.query_one("#field-reason", Input).value = "key found in a log"
        app.screen.query_one(DoIt).focus()
        await pilot.pause()

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=USUAL, run_before=story)


@pytest.mark.sizes(USUAL, WIDE)
def test_a_secret(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        app.push_screen(SecretScreen("Create registration token: the secret", SECRET))
        await until_on(app, SecretScreen)
        await pilot.press("c")

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=size, run_before=story)


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_the_lists_without_a_key(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await pilot.press("7")
        await until_on(app, ListMenu)

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=size, run_before=story)

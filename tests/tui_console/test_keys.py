"""What the keys do, wherever one is."""

import asyncio
import itertools

import pytest

from agent_console.tui.app import ConsoleApp
from agent_console.tui.help import HelpScreen
from agent_console.tui.link import LinkState, Opening
from agent_console.tui.panes.detail_screen import DetailScreen
from tests.support.fleet import Fleet
from tests.tui_console.other_side import Watched
from tests.tui_console.stage import (
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
    until_on,
)

GROUPS = {
    "waiting": {"○ queued", "◔ scheduled"},
    "assigned and running": {"◑ assigned", "● running", "◌ cancelling"},
    "failed and dead letters": {"✗ failed", "▲ dead_letter"},
    "succeeded and cancelled": {"✓ succeeded", "- cancelled"},
}

PANES = {"2": "agents", "3": "jobs"}
WAYS = [("3",), ("3", "enter"), ("3", "question_mark"), ("3", "enter", "question_mark"), ("question_mark",)]


async def test_f_goes_through_the_groups_and_round(opening: Opening) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")

        for group, states in GROUPS.items():
            await press(pilot, "f")
            assert f"{len(row_ids(list_of(app)))} {group}" in shown_text(app)
            assert {cells(list_of(app), row_id)[0] for row_id in row_ids(list_of(app))} == states

        await press(pilot, "f")
        assert "25 all jobs" in shown_text(app)


async def test_enter_opens_and_one_key_closes(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        for closing in ("escape", "q", "enter"):
            await press(pilot, "down")
            job = list_of(app).table.cursor_id

            await pilot.press("enter")
            await until(lambda: app.detail is not None, "the detail")
            assert job is not None
            assert job in shown_text(app)

            await pilot.press(closing)
            await until(lambda: len(app.screen_stack) == 1, f"the list again after {closing}")
            assert list_of(app).table.cursor_id == job


@pytest.mark.rule("U000-11")
async def test_every_pane_is_one_key_away_from_everywhere(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        for way, (key, pane) in itertools.product(WAYS, PANES.items()):
            await press(pilot, *way)

            await press(pilot, key)

            assert (len(app.screen_stack), list_of(app).kind.name) == (1, pane), f"{key} after {way}"
            assert app.focused is list_of(app).table


async def test_help_lists_the_keys_of_where_it_was_asked_for(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "question_mark")
        on_agents = shown_text(app)
        await press(pilot, "escape", "3", "question_mark")
        on_jobs = shown_text(app)
        await press(pilot, "escape", "enter", "question_mark")
        on_one_job = shown_text(app)

        assert isinstance(app.screen, HelpScreen)
        assert "Mark all or none" in on_agents
        assert ("Group" in on_agents, "Group" in on_jobs) == (False, True)
        assert "Back" in on_one_job
        assert "Mark all or none" not in on_one_job


async def test_help_asked_for_before_the_pane_is_there_leaves_the_keys_to_that_pane(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        app.action_pane("jobs")
        app.action_help()
        await until_on(app, HelpScreen)
        await press(pilot, "escape")

        assert list_of(app).kind.name == "jobs"
        await until(lambda: app.focused is list_of(app).table, "the keys go to the jobs")


async def test_keys_pressed_before_there_is_a_pane_do_nothing(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3", "f", "enter", "space", "escape")

        await loaded(pilot)
        assert len(app.screen_stack) == 1


async def test_a_second_enter_does_not_open_twice(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        list_of(app).table.action_choose_row()
        list_of(app).table.action_choose_row()
        await until(lambda: app.detail is not None, "the detail")
        await pilot.pause()

        assert [type(screen) for screen in app.screen_stack[1:]] == [DetailScreen]


async def test_q_stops_everything_before_it_leaves() -> None:
    other = Watched(slow_end=asyncio.Event())
    app = console(other.opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: app.link.status.state is LinkState.UP, "up")

        await pilot.press("q", "q", "ctrl+q")
        await until(lambda: "Leaving …" in shown_text(app), "a word about it")
        assert app.return_code is None
        assert other.slow_end is not None
        other.slow_end.set()

        await until(lambda: app.return_code == 0, "the end")
        assert other.ended == 1


def footer_line(app: ConsoleApp) -> str:
    return shown_text(app).splitlines()[-1]


async def test_the_footer_offers_what_works_on_a_row(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await until(lambda: "Open" in footer_line(app) and "Actions" in footer_line(app), "the keys of an agent")
        assert "Quit" in footer_line(app)


async def test_an_empty_list_offers_nothing_for_a_row(fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now(), revoked_at = now(), revocation_reason = 'gone'")
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await until(lambda: "New" in footer_line(app), "what can be done without a row")

        assert "Open" not in footer_line(app)
        assert "Actions" not in footer_line(app)


async def test_no_column_of_the_queue_leaves_a_narrow_screen(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(60, 20)) as pilot:
        await loaded(pilot)

        await press(pilot, "3")

        assert shown_text(app).splitlines()[3].split()[-1] == "Age"


async def test_why_a_job_failed_can_be_read_on_eighty_columns(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "3", "f", "f", "f")

        assert "robots.txt forbids this" in shown_text(app)
        assert "lease expired: gantry" in shown_text(app)

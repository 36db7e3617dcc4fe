"""Filters, the command line, the palette, the help and the keys, as they look."""

import pytest
from textual.pilot import Pilot

from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.command_line import CommandScreen
from agent_console.tui.dialogs.palette import Palette
from agent_console.tui.setup import Setup
from agent_console.tui.widgets.filter_line import FilterLine
from tests.snapshots.conftest import NARROW, USUAL, WIDE, LooksRight, Sizes, SnapCompare, Story
from tests.support.fleet import Fleet
from tests.tui_console.stage import app_of, console, directly, fixed_clock, loaded, press, until, until_on
from tests.tui_console.test_filtering import typed


def jobs(fleet: Fleet) -> ConsoleApp:
    return console(directly(fleet.working), start="jobs")


def filtering(text: str, *keys: str) -> Story:
    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, text)
        await press(pilot, *keys)
        await until(lambda: not app_of(pilot).workers or app_of(pilot).pane.has_answer, "the list")
        await pilot.pause()

    return story


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_a_filter_being_typed(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    assert snap_compare(jobs(still_fleet), terminal_size=size, run_before=filtering("crawl status:"))


def test_agents_are_offered(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await filtering("agent:")(pilot)
        line = pilot.app.screen.query_one(FilterLine)
        await until(lambda: len(line.offered) > 1, "the agents")
        await pilot.pause()

    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=story)


def test_a_filter_that_cannot_be_read(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    story = filtering("crawl stauts:failed", "enter")

    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=story)


@pytest.mark.sizes(USUAL, WIDE)
def test_a_filtered_list(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    story = filtering("crawl !status:succeeded", "enter")

    assert snap_compare(jobs(still_fleet), terminal_size=size, run_before=story)


def test_nothing_matches(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=filtering("zebra", "enter"))


def commanding(text: str, *keys: str) -> Story:
    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await pilot.press("colon")
        await until_on(app_of(pilot), CommandScreen)
        await typed(pilot, text)
        await pilot.press(*keys)
        await pilot.pause()

    return story


def test_a_command_being_typed(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=commanding("jobs "))


def test_an_unknown_command(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=commanding("agnets", "enter"))


def test_the_palette(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await pilot.press("ctrl+p")
        await until_on(app_of(pilot), Palette)
        await typed(pilot, "drain")

    assert snap_compare(jobs(still_fleet), terminal_size=USUAL, run_before=story)


def test_help_searched(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(jobs(still_fleet), USUAL, "question_mark", "slash", *"agent")


def test_what_can_be_copied(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(jobs(still_fleet), USUAL, "y")


def test_a_clash_of_keys_stands_in_the_help(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    keymap = {"list.act": "f", "list.refesh": "f5"}
    setup = Setup(directly(still_fleet.working), "example", start="jobs", keymap=keymap)

    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        # What is said at the start goes by itself, sooner or later.
        pilot.app.clear_notifications()
        await press(pilot, "question_mark")

    assert snap_compare(ConsoleApp(lambda: setup, clock=fixed_clock), terminal_size=USUAL, run_before=story)

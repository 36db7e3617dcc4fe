"""The menu of the lists without a key is left by the keys of the panes too."""

import pytest
from textual.binding import Binding

from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.link import Opening
from agent_console.tui.panes.every import MORE
from agent_console.tui.setup import Setup
from agent_console.tui.widgets.pane_tabs import PANE_KEYS, tabs_of
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, fixed_clock, loaded, press, until, until_on


@pytest.mark.parametrize("binding", PANE_KEYS, ids=lambda binding: binding.description)
async def test_from_the_menu_one_key_leads_to_each_pane(opening: Opening, binding: Binding) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("7")
        await until_on(app, ListMenu)

        await pilot.press(binding.key)

        await until(lambda: len(app.screen_stack) == 1, "the menu gone")
        await until(lambda: app.pane.tab == (binding.id or "").removeprefix("pane."), binding.description)


async def test_the_key_that_opened_the_menu_closes_it_and_opens_it_again(opening: Opening) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        for _ in range(2):
            await pilot.press("7")
            await until_on(app, ListMenu)
            await pilot.press("7")
            await until(lambda: len(app.screen_stack) == 1, "the menu gone")
        assert app.pane.pane_name == "agents"


async def test_a_key_that_was_moved_is_moved_in_the_menu_as_well(opening: Opening) -> None:
    setup = Setup(opening, "example", start="agents", keymap={"pane.jobs": "f3", "pane.more": "f7"})
    app = ConsoleApp(lambda: setup, theme_name="dark", clock=fixed_clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("f7")
        await until_on(app, ListMenu)
        await pilot.press("3", "7")
        assert isinstance(app.screen, ListMenu)

        await pilot.press("f3")

        await until(lambda: app.pane.pane_name == "jobs" and len(app.screen_stack) == 1, "the jobs")


async def test_a_pane_whose_key_was_moved_keeps_its_place_among_the_tabs(opening: Opening) -> None:
    setup = Setup(opening, "example", start="agents", keymap={"pane.jobs": "f3,f4"})
    app = ConsoleApp(lambda: setup, theme_name="dark", clock=fixed_clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        tabs = tabs_of(app.screen.active_bindings.values())

        assert " ".join(tab.key for tab in tabs) == "0 1 2 f3 4 5 6 7"


WHERE: dict[str, tuple[str, ...]] = {
    "a job": ("3", "enter"),
    "a thread": ("4", "enter"),
    "a trace": ("4", "enter", "t"),
    "the help": ("question_mark",),
}


@pytest.mark.parametrize("keys", WHERE.values(), ids=WHERE)
async def test_its_key_works_everywhere_and_esc_leads_back_there(story: Fleet, keys: tuple[str, ...]) -> None:
    app = console(directly(story.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, *keys)
        await until(lambda: len(app.screen_stack) > 1, "a screen over the panes")
        below = app.screen

        await pilot.press("7")
        await until_on(app, ListMenu)
        await pilot.press("escape")
        await until(lambda: app.screen is below, "where one was")
        await pilot.press("7")
        await until_on(app, ListMenu)
        await pilot.press("enter")

        await until(lambda: len(app.screen_stack) == 1 and app.pane.pane_name in MORE, "a list")

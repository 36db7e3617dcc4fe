"""What is typed fast behind the key that opens a line is text in that line, never an action."""

from collections.abc import Awaitable, Callable

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from agent_console.tui.app import ConsoleApp
from agent_console.tui.help import HelpScreen
from tests.support.fleet import Fleet
from tests.tui_console.conversation_stage import long_thread, opened
from tests.tui_console.stage import app_of, console, directly, loaded, press, until, until_on

AHEAD = "hi2q4"

Place = Callable[[Pilot[None], Fleet], Awaitable[None]]


def typed_in_one_go(app: ConsoleApp, key: str, text: str = AHEAD) -> None:
    """All of them wait already when the console looks at the first."""
    for name in (key, *text):
        app.post_message(events.Key({"\n": "enter"}.get(name, name), name if len(name) == 1 else None))


def lines(app: ConsoleApp) -> list[str]:
    fields = app.screen.query(Input), app.screen.query(TextArea)
    return [line.value for line in fields[0]] + [area.text for area in fields[1]]


async def in_a_thread(pilot: Pilot[None], fleet: Fleet) -> None:
    await opened(pilot, long_thread(fleet, 3))


async def in_the_trail(pilot: Pilot[None], fleet: Fleet) -> None:
    await loaded(pilot)
    await press(pilot, "6")


async def in_the_matrix(pilot: Pilot[None], fleet: Fleet) -> None:
    await loaded(pilot)
    await press(pilot, "5")


async def in_the_help(pilot: Pilot[None], fleet: Fleet) -> None:
    await loaded(pilot)
    await pilot.press("question_mark")
    await until_on(app_of(pilot), HelpScreen)


@pytest.mark.parametrize(
    ("place", "key", "text"),
    [
        (in_a_thread, "c", "hi2\nq4"),
        (in_a_thread, "slash", AHEAD),
        (in_a_thread, "number_sign", AHEAD),
        (in_the_trail, "slash", AHEAD),
        (in_the_matrix, "slash", AHEAD),
        (in_the_help, "slash", AHEAD),
    ],
)
async def test_it_is_all_in_the_line_and_one_is_where_one_was(
    story: Fleet, place: Place, key: str, text: str
) -> None:
    app = console(directly(story.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await place(pilot, story)
        shown = app.screen, app.pane

        typed_in_one_go(app, key, text)

        await until(lambda: text in lines(app), "what was typed")
        assert (app.screen, app.pane) == shown

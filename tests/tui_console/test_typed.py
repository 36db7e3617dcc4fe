"""Whatever is typed or pasted where something may be typed: it is read or refused, and the console lives."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from agent_console.domain.errors import ConsoleError
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.link import LinkState
from agent_console.tui.panes.audit.filters import read_filter
from agent_console.tui.panes.conversation.places import place_of
from agent_console.tui.panes.routes.apply import ApplyScreen
from agent_console.tui.panes.routes.editor import RouteEditor
from agent_console.tui.panes.routes.form import RouteForm
from tests.support.fleet import AT, Fleet
from tests.tui_console.conversation_stage import opened, thread_called
from tests.tui_console.route_stage import on_pair
from tests.tui_console.stage import SteppingClock, console, directly, loaded, press, shown_text, until, until_on

TYPED = (
    *("who:usr_01ab", "since:999999d", "since:0001-01-01T00:00+14:00", "until:0001-01-02"),
    *("999999d", "0001-01-01T00:00+14:00", "w" * 201, "be\0fore", "\ud800"),
)
READ = (
    *("on:job_1", "since:9999-12-31T23:59-14:00", "9999-12-31T23:59-14:00", "0001-01-01", "9999-12-31", "99:99"),
    *("#" + "9" * 40, "9223372036854775807", "run_1", "who:", "action:.", '"', "who:'", "\x1b]52;c;aGk=\x07"),
)

Way = Callable[[Pilot[None], Fleet], Awaitable[None]]
FILTER, FIND = "slash", "ctrl+f"


def plainly(*keys: str) -> Way:
    async def way(pilot: Pilot[None], story: Fleet) -> None:
        await loaded(pilot)
        await press(pilot, *keys)

    return way


AT_ONCE = plainly()


async def to_a_thread(pilot: Pilot[None], story: Fleet) -> None:
    await opened(pilot, thread_called(story, "Nightly build is red"))


@dataclass(frozen=True)
class Place:
    """Where something may be typed: the key that opens it, and the one that gives what was typed there."""

    start: str
    opens: str
    gives: str = "enter"
    way: Way = AT_ONCE


PLACES = {
    **{f"{pane}, filter": Place(pane, FILTER) for pane in ("approvals", "agents", "jobs", "threads", "audit")},
    **{f"{pane}, find": Place(pane, FIND) for pane in ("approvals", "agents", "jobs", "threads", "audit")},
    "routes, matrix": Place("routes", FILTER),
    "routes, list": Place("routes", FIND, way=plainly("m")),
    "a thread, where to": Place("threads", "number_sign", way=to_a_thread),
    "a thread, search": Place("threads", FILTER, way=to_a_thread),
    "a thread, draft": Place("threads", "c", "f5", way=to_a_thread),
}


def typed_into(app: ConsoleApp) -> bool:
    return isinstance(app.focused, Input | TextArea)


async def is_alive(app: ConsoleApp, pilot: Pilot[None]) -> None:
    """Also when all that was asked for has been answered."""
    await pilot.pause()
    asked = [worker for worker in app.workers if worker.group in ("going", "sending", "asking", "more")]
    await app.workers.wait_for_complete(asked)
    assert app.is_running
    assert app.link.status.state is LinkState.UP


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
async def test_no_word_that_is_typed_ends_the_console(story: Fleet, place: Place) -> None:
    app = console(directly(story.working), start=place.start)
    async with app.run_test(size=(80, 24)) as pilot:
        await place.way(pilot, story)
        for words in TYPED:
            await pilot.press(place.opens)
            await until(lambda: typed_into(app), f"a place for {words[:40]!a}")
            app.post_message(events.Paste(words))
            await pilot.press(place.gives)
            await is_alive(app, pilot)
            if typed_into(app):
                await pilot.press("ctrl+u", "escape")
            await is_alive(app, pilot)


async def to_an_editor(pilot: Pilot[None], story: Fleet) -> None:
    app = await on_pair(pilot, story, "dispatch", "ember")
    await press(pilot, "e")
    await until_on(app, RouteEditor)
    await press(pilot, "right")


async def to_a_file(pilot: Pilot[None], story: Fleet) -> None:
    app = await loaded(pilot)
    await press(pilot, "Y")
    await until_on(app, ApplyScreen)


@pytest.mark.parametrize(
    ("way", "name", "other"),
    [(to_an_editor, "notes", "reason"), (to_an_editor, "reason", "notes"), (to_a_file, "path", "reason")],
)
async def test_no_word_in_a_field_ends_the_console(story: Fleet, way: Way, name: str, other: str) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        for words in TYPED:
            if not isinstance(app.screen, RouteForm):
                await way(pilot, story)
            app.screen.query_one(f"#{other}", Input).value = "because"
            app.screen.query_one(f"#{name}", Input).value = words
            for line in [line for line in app.screen.query(DoIt) if line.display]:
                line.focus()
                await pilot.press("y", "enter")
                await is_alive(app, pilot)


POLICY = "format: 1\nroutes:\n  - from: dispatch\n    to: ember\n    policy: blocked\n"


@pytest.mark.parametrize("reason", ["be\0fore", "\ud800", "w" * 500])
async def test_a_reason_that_can_not_be_kept_applies_nothing(story: Fleet, tmp_path: Path, reason: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await to_a_file(pilot, story)
        assert isinstance(app.screen, ApplyScreen)
        app.screen.query_one("#path", Input).value = str(tmp_path / "policy.yaml")
        app.screen.query_one("#reason", Input).value = reason
        see, apply = app.screen.query(DoIt)
        see.focus()
        await press(pilot, "enter")
        await until(lambda: apply.has_focus, "the plan")
        await press(pilot, "y")

        if len(reason) == 500:
            await until(lambda: not app.stacked, "it is done")
        else:
            await until(lambda: "reason: " in shown_text(app), "what is wrong with it")


async def test_a_reason_to_reject_that_can_not_be_kept_is_refused(story: Fleet) -> None:
    clock = SteppingClock(AT)
    app = console(directly(story.working), start="approvals", clock=clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "enter")
        clock.now = AT.replace(minute=AT.minute + 1)
        await press(pilot, "r")
        await until_on(app, OperationForm)
        app.screen.query_one(Input).value = "be\0fore"
        app.screen.query_one(DoIt).focus()
        await press(pilot, "y")

        await until(lambda: "must not contain NUL" in shown_text(app), "what is wrong with it")


@given(st.text() | st.sampled_from(TYPED + READ))
def test_any_text_is_a_filter_and_a_place_or_is_refused(text: str) -> None:
    for read in (lambda: read_filter(text, AT, {}), lambda: place_of(text, AT)):
        try:
            read()
        except ConsoleError as refused:
            assert refused.message

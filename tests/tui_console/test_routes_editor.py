"""Editing a route: seen before it is done, done by a key of its own, and never over what somebody else did."""

from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest
from textual.widgets import Input

from agent_console.domain.kinds import RoutePolicy
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.help import HelpScreen
from agent_console.tui.link import LinkState
from agent_console.tui.panes.routes.choice import PolicyChoice
from agent_console.tui.panes.routes.editor import RouteEditor, route_editor
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.setup import Setup
from agent_console.tui.wanted import ScreenWanted
from tests.support.fleet import Fleet
from tests.support.recorded_requests import record_requests
from tests.support.serving import serving
from tests.tui_console.route_stage import on_pair, pair_of, routes_of, shows, type_words
from tests.tui_console.stage import (
    ADMIN,
    console,
    directly,
    fixed_clock,
    loaded,
    press,
    through,
    through_server,
    until,
    until_on,
)

PAIR = "select r.policy, r.version, r.notes from a2a_routes r join agents f on f.id = r.from_agent_id" + (
    " join agents t on t.id = r.to_agent_id where f.name = %s and t.name = %s"
)
CHANGED_BY_ANOTHER = (
    "update a2a_routes set policy = 'allowed', notes = 'let them', version = 2 where id ="
    " (select r.id from a2a_routes r join agents f on f.id = r.from_agent_id"
    " join agents t on t.id = r.to_agent_id where f.name = 'dispatch' and t.name = 'gantry')"
)


def words_in(app: ConsoleApp, field: str) -> str:
    return app.screen.query_one(f"#{field}", Input).value


async def on_save(app: ConsoleApp) -> None:
    """The cursor on the line that saves."""
    next(line for line in app.screen.query(DoIt) if line.display).focus()


async def test_a_route_is_edited_after_its_change_and_its_replay_were_seen(story: Fleet) -> None:
    record_requests(story, "dispatch", "ember", 42, action="a2a.delegate.allowed")
    record_requests(story, "atlas", "fathom", 8, action="a2a.delegate.allowed")
    app = console(through_server(story), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "dispatch", "ember")
        await press(pilot, "enter")
        await until_on(app, RouteEditor)
        await shows(app, "version 1, 19h ago by Ana Costa", "none yet")

        await press(pilot, "right", "right")
        await shows(app, "✓ allowed → ✗ blocked", "Of 50 recorded requests since 43m ago this would change 42.")
        await shows(app, "and 37 more")
        await on_save(app)
        await press(pilot, "y")
        await shows(app, "A reason is needed")
        await until(lambda: app.focused is app.screen.query_one("#reason"), "the cursor where the reason goes")
        await type_words(pilot, "stop it")
        await on_save(app)
        await press(pilot, "enter", "enter")
        assert story.execute(PAIR, "dispatch", "ember") == [("allowed", 1, "triage may ask for a patch")]
        await on_save(app)
        await press(pilot, "y")

        await until(lambda: not app.stacked, "the editor is gone")
        assert story.execute(PAIR, "dispatch", "ember") == [("blocked", 2, "triage may ask for a patch")]
        assert story.one("select reason from a2a_route_versions where version = 2") == "stop it"
        await shows(app, "dispatch → ember   ✗ blocked   version 2")


async def test_what_changed_meanwhile_is_shown_beside_the_draft_and_nothing_typed_is_lost(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "dispatch", "gantry")
        await press(pilot, "e")
        await until_on(app, RouteEditor)
        await press(pilot, "right", "down", "end")
        await type_words(pilot, " at all")
        await press(pilot, "down")
        await type_words(pilot, "no more")
        await on_save(app)
        story.execute(CHANGED_BY_ANOTHER)
        await press(pilot, "y")

        await shows(app, "It was changed meanwhile, so nothing is saved", "let them", "✓ allowed")
        await shows(app, "nothing is deployed without a person at all")
        assert story.execute(PAIR, "dispatch", "gantry") == [("allowed", 2, "let them")]
        await press(pilot, "y", "y")
        assert story.execute(PAIR, "dispatch", "gantry") == [("allowed", 2, "let them")]

        await press(pilot, "enter")
        await shows(app, "✓ allowed → ✗ blocked")
        assert words_in(app, "reason") == "no more"
        await press(pilot, "y")
        await until(lambda: not app.stacked, "the editor is gone")
        kept = "nothing is deployed without a person at all"
        assert story.execute(PAIR, "dispatch", "gantry") == [("blocked", 3, kept)]


async def test_who_looks_at_the_help_while_it_is_saved_comes_back_to_the_matrix(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "ember", "gantry")
        await press(pilot, "e")
        await until_on(app, RouteEditor)
        await press(pilot, "right", "right")
        editor = app.screen
        assert isinstance(editor, RouteEditor)
        await press(pilot, "question_mark")
        editor.leave()
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)

        await press(pilot, "escape")

        await until(lambda: len(app.screen_stack) == 1, "the matrix")
        editor.action_close()
        await pilot.pause()
        assert pair_of(app) == ("ember", "gantry")


async def test_a_route_is_removed_by_a_second_key_and_can_be_made_again(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "atlas", "fathom")
        await press(pilot, "d")
        await until_on(app, RouteEditor)
        await shows(app, "✓ allowed → · no route: blocked", "Press y to remove the route")
        app.screen.query_one("#reason", Input).value = "not used"
        await on_save(app)
        await press(pilot, "d", "enter")
        assert len(story.execute(PAIR, "atlas", "fathom")) == 1
        await on_save(app)
        await press(pilot, "y")
        await until(lambda: not app.stacked, "the editor is gone")
        assert story.execute(PAIR, "atlas", "fathom") == []
        await shows(app, "atlas → fathom   · no route: blocked")

        await press(pilot, "e")
        await until_on(app, RouteEditor)
        await shows(app, "a new route")
        await press(pilot, "right")
        app.screen.query_one("#reason", Input).value = "needed after all"
        await on_save(app)
        await press(pilot, "y")
        await until(lambda: not app.stacked, "the editor is gone")
        assert story.execute(PAIR, "atlas", "fathom") == [("allowed", 3, None)]

        await press(pilot, "h")
        await shows(app, "version 3", "version 2", "removed", "not used", "needed after all", "first policy")


async def test_a_lost_connection_keeps_the_draft(story: Fleet) -> None:
    token = story.token(ADMIN)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(serving(story.working))
        app = console(through(url, token), start="routes")
        pilot = await stack.enter_async_context(app.run_test(size=(80, 24)))
        await on_pair(pilot, story, "ember", "gantry")
        await press(pilot, "e")
        await until_on(app, RouteEditor)
        await press(pilot, "left", "down", "down")
        await type_words(pilot, "by hand")

        await first.aclose()
        await until(lambda: app.link.status.state is LinkState.LOST, "the loss")
        await on_save(app)
        await pilot.press("y")
        await shows(app, "There is no connection; nothing was changed, and what you typed stays.")
        assert (words_in(app, "reason"), app.screen.query_one(PolicyChoice).policy) == (
            "by hand",
            RoutePolicy.REQUIRES_HUMAN_APPROVAL,
        )

        await stack.enter_async_context(serving(story.working, port=urlsplit(url).port or 0))
        await until(lambda: app.link.status.state is LinkState.UP, "up again")
        await press(pilot, "y")
        await until(lambda: not app.stacked, "the editor is gone")
        assert story.execute(PAIR, "ember", "gantry")[0][:2] == ("requires_human_approval", 2)


async def test_a_rule_that_somebody_suggests_is_only_a_draft(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        around = Surroundings(app.link, routes_of(app).around.clock)
        wanted = route_editor(around, "dispatch", "gantry", RoutePolicy.ALLOWED, "as asked\x1b[31m")
        routes_of(app).post_message(ScreenWanted(wanted))
        await until_on(app, RouteEditor)

        await shows(app, "dispatch → gantry   version 1", "? asks a person → ✓ allowed", r"as asked\x1b[31m")
        await press(pilot, "2")
        await shows(app, "What you typed is not saved.")
        await press(pilot, "2")
        await until(lambda: app.pane.pane_name == "agents", "the other pane")
        assert not app.stacked
        assert story.execute(PAIR, "dispatch", "gantry")[0][:2] == ("requires_human_approval", 1)


@pytest.mark.parametrize("key", ["3", "f3"])
async def test_a_key_that_leads_elsewhere_asks_before_a_draft_is_lost_wherever_it_was_moved(
    story: Fleet, key: str
) -> None:
    keymap = {} if key == "3" else {"pane.jobs": key}
    setup = Setup(directly(story.working), "example", start="routes", keymap=keymap)
    app = ConsoleApp(lambda: setup, theme_name="dark", clock=fixed_clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "dispatch", "ember")
        await press(pilot, "e")
        await until_on(app, RouteEditor)
        await press(pilot, "right", key)
        await shows(app, "What you typed is not saved.")
        assert isinstance(app.screen, RouteEditor)

        await press(pilot, key)
        await until(lambda: not app.stacked and app.pane.pane_name == "jobs", "elsewhere")

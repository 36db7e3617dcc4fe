"""Going to another profile or team: at once, whatever the old place is doing, and with nothing of it left."""

import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from agent_console.cli.opening import KEY_FILE_VARIABLE, opened, use_key_file
from agent_console.cli.places import setup_from
from agent_console.config import Settings
from agent_console.domain.errors import ConfigError
from agent_console.domain.ids import ThreadId
from agent_console.repository.port import Repository
from agent_console.tui.app import ConsoleApp
from agent_console.tui.commanding import WITHOUT_COLOUR
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.dialogs.profiles import ProfilesDialog
from agent_console.tui.link import LinkState
from agent_console.tui.panes.conversation.drafts import Draft, drafts_of
from agent_console.tui.places import OWN_TOKEN
from agent_console.tui.switching import LinkChanged
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.tui_console.stage import (
    ADMIN,
    fixed_clock,
    has_detail,
    header_text,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
    until_on,
)
from tests.tui_console.test_typed_ahead import lines, typed_in_one_go

SIZE = (100, 30)


def _opening(settings: Settings, say: Callable[[str], None]) -> AbstractAsyncContextManager[Repository]:
    return opened(settings.profile, say)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.fixture
async def server() -> AsyncIterator[AsyncExitStack]:
    """Holds the server of the production profile; whoever closes it stops the server."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def config(
    fleet: Fleet, story: Fleet, tmp_path: Path, silent_port: int, server: AsyncExitStack
) -> dict[str, object]:
    """A file with places of every kind. The fleet has a job that the story has not, and the other way round."""
    fleet.add_jobs(1, type="only-in-staging")
    story.add_jobs(1, type="only-in-production")
    url = await server.enter_async_context(serving(story.working))
    token = tmp_path / "token"
    token.write_text(story.token(ADMIN))
    token.chmod(0o600)
    file = tmp_path / "config.toml"
    file.write_text(
        f"""
        default_profile = "staging"
        [profiles.staging]
        dsn = "{fleet.working}"
        team = "example"
        [profiles.production]
        url = "{url}"
        token_file = "{token}"
        production = true
        [profiles.reading]
        dsn = "{story.working}"
        team = "example"
        user = "{ADMIN}"
        read_only = true
        theme = "mono"
        [profiles.reading.keymap]
        "list.refesh" = "f9"
        [profiles.silent]
        url = "http://127.0.0.1:{silent_port}"
        token_file = "{token}"
        [profiles.nowhere]
        dsn = "postgresql://127.0.0.1:1/x"
        [profiles.unfinished]
        url = "{url}"
        """
    )
    return {"config": str(file)}


def console_on(options: dict[str, object], profile: str = "staging") -> ConsoleApp:
    chosen = options | {"profile": profile}
    return ConsoleApp(lambda: setup_from(chosen, _opening), clock=fixed_clock)


def types_of(app: ConsoleApp) -> str:
    return " ".join(getattr(list_of(app).record(row), "type", "") for row in row_ids(list_of(app)))


async def go_to(app: ConsoleApp, pilot: Pilot[None], name: str) -> None:
    await pilot.press("C")
    await until_on(app, ProfilesDialog)
    names = [str(option.id) for option in app.screen.query_one(OptionList).options]
    app.screen.query_one(OptionList).highlighted = names.index(name)
    await pilot.press("enter")
    await until(lambda: app.has_panes and name in header_text(app), f"at {name}")


async def has_jobs(app: ConsoleApp, pilot: Pilot[None]) -> None:
    await until(lambda: app.link.status.state is LinkState.UP, "an answer")
    await press(pilot, "3")
    await until(lambda: bool(row_ids(list_of(app))), "jobs")


async def test_the_dialog_says_what_each_profile_is_and_leads_to_its_teams(
    config: dict[str, object], fleet: Fleet
) -> None:
    fleet.add_team("second")
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)

        await pilot.press("C")
        await until_on(app, ProfilesDialog)
        await until(lambda: shown_text(app).count("✓ answers") == 3, "those that answer")
        await until(lambda: "can't be used" in shown_text(app), "one that does not")

        within = [line.split("│")[1] for line in shown_text(app).splitlines() if line.count("│") == 2]
        words = [line.split() for line in within if line.split()]
        lines = dict(itertools.pairwise(" ".join(line) for line in words))
        told = {line.split()[1]: (line, answer) for line, answer in lines.items() if line[0] in "●○"}
        assert "● staging direct" in told["staging"][0]
        assert "○ production production server http://127" in told["production"][0]
        assert "○ reading read-only direct" in told["reading"][0]
        assert "embedded" in told["local"][0]
        assert told["staging"][1] == "✓ answers, team example"
        assert told["nowhere"][1].startswith("✗ The database x at 127.0.0.1:1 can't be used")
        assert "no token" in told["unfinished"][1]
        assert told["local"][1] == "· starts when you go there"

        await pilot.press("down", "t")
        await until(lambda: OWN_TOKEN[:40] in shown_text(app), "that a token has one team")
        assert isinstance(app.screen, ProfilesDialog)

        await pilot.press("up", "t", *"second", "enter")
        await until(lambda: app.has_panes and app.link.me is not None, "an answer")
        assert app.link.me is not None
        assert (app.link.me.team, app.header_facts.profile) == ("second", "staging")


async def test_one_goes_from_a_database_to_a_server_and_back_and_takes_nothing_along(
    config: dict[str, object],
) -> None:
    app, thread = console_on(config), ThreadId(int=7)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await has_jobs(app, pilot)
        assert "only-in-staging" in types_of(app)
        await press(pilot, "enter")
        drafts_of(app.link).keep(thread, Draft("half a sentence"))

        await go_to(app, pilot, "production")

        assert len(app.screen_stack) == 1
        assert "only-in-staging" not in shown_text(app)
        await has_jobs(app, pilot)
        assert "only-in-production" in types_of(app)
        assert "only-in-staging" not in types_of(app)
        facts = app.header_facts
        assert (facts.profile, facts.production) == ("production", True)
        assert not drafts_of(app.link).of(thread).says_something

        await go_to(app, pilot, "staging")
        await has_jobs(app, pilot)

        assert "only-in-staging" in types_of(app)
        assert not app.header_facts.production
        assert drafts_of(app.link).of(thread).text == "half a sentence"


async def test_one_can_go_from_screens_that_lie_one_over_another(config: dict[str, object]) -> None:
    """The lower one comes to light for a moment, when there is no pane any more that a way could begin at."""
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "f", "enter")
        await until(lambda: app.detail is not None and has_detail(app), "a job")
        await press(pilot, "A")
        await until(lambda: len(app.stacked) == 2 and has_detail(app), "its agent")

        await go_to(app, pilot, "production")
        await has_jobs(app, pilot)

        assert "only-in-production" in types_of(app)
        assert len(app.screen_stack) == 1


async def test_one_can_go_from_where_nobody_ever_says_a_word(config: dict[str, object]) -> None:
    app = console_on(config, "silent")
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.has_panes, "the panes")
        assert app.link.status.state is not LinkState.UP

        await go_to(app, pilot, "production")
        await has_jobs(app, pilot)

        assert "only-in-production" in types_of(app)


async def test_one_can_go_while_the_connection_is_lost_and_come_back_to_find_it_lost(
    config: dict[str, object], server: AsyncExitStack
) -> None:
    app = console_on(config, "production")
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await server.aclose()
        await until(lambda: app.link.status.state is LinkState.LOST, "lost")

        await go_to(app, pilot, "staging")
        await has_jobs(app, pilot)
        assert "only-in-staging" in types_of(app)

        await go_to(app, pilot, "production")
        await until(lambda: app.link.status.state is LinkState.LOST, "still lost")
        await until(lambda: "No server answers" in shown_text(app), "why")
        assert "only-in-staging" not in shown_text(app)


async def test_what_the_link_tells_a_console_that_is_closed_already_ends_there(config: dict[str, object]) -> None:
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
    assert not app.screen_stack

    await app._on_message(LinkChanged(app.link.status, app.link))


async def test_a_read_only_profile_takes_the_keys_that_change_something_away(config: dict[str, object]) -> None:
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await has_jobs(app, pilot)
        await until(lambda: "list.act" in live_keys(app), "a key that acts")

        await go_to(app, pilot, "reading")
        await has_jobs(app, pilot)
        await pilot.pause()

        assert not {"list.act", "list.new"} & live_keys(app)
        assert "read-only" in header_text(app)


async def test_each_profile_has_its_own_look_and_its_own_keys(config: dict[str, object]) -> None:
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)

        await go_to(app, pilot, "reading")
        assert WITHOUT_COLOUR in app.get_line_filters()
        await until(lambda: bool(app.key_problems), "what is wrong with its keys")

        await go_to(app, pilot, "staging")
        assert WITHOUT_COLOUR not in app.get_line_filters()
        assert app.key_problems == ()


def live_keys(app: ConsoleApp) -> set[str | None]:
    return {active.binding.id for active in app.screen.active_bindings.values()}


async def test_a_profile_that_cannot_be_used_is_told_and_one_is_where_one_was(config: dict[str, object]) -> None:
    app = console_on(config)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(pilot)
        await has_jobs(app, pilot)

        await pilot.press("colon", *"profile unfinished", "enter")
        await until(lambda: any("no token" in note.message for note in app._notifications), "why not")
        await until(lambda: app.has_panes and "staging" in header_text(app), "back")
        await has_jobs(app, pilot)
        assert "only-in-staging" in types_of(app)

        await go_to(app, pilot, "silent")
        await pilot.press("7")
        await until_on(app, ListMenu)
        app._refuse(ConfigError("It was closed."))
        await until(lambda: app.has_panes and app.header_facts.profile == "staging", "back, from below a dialog")
        await has_jobs(app, pilot)
        await pilot.press("a")
        await until_on(app, ActionMenu)
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "the list again")

        await pilot.press("colon", *"profile sil")
        await until(lambda: "silent" in shown_text(app), "the name that begins so is offered")
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "the list again")
        await pilot.press("colon", *"profile unheard-of", "enter")
        await until(lambda: any("There is no profile" in note.message for note in app._notifications), "why not")

        assert app.header_facts.profile == "staging"
        assert "only-in-staging" in types_of(app)


async def test_a_team_is_typed_as_fast_as_one_likes(config: dict[str, object]) -> None:
    app = console_on(config)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("C")
        await until_on(app, ProfilesDialog)

        typed_in_one_go(app, "t", "squad")

        await until(lambda: "squad" in lines(app), "what was typed")
        assert isinstance(app.screen, ProfilesDialog)


def test_every_database_on_this_machine_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One goes from one to another in one program; what the user has set holds for all of them."""
    monkeypatch.setenv(KEY_FILE_VARIABLE, "")

    used = []
    for path in ("first.key", "second.key"):
        use_key_file(path)
        used.append(os.environ[KEY_FILE_VARIABLE])
    monkeypatch.setenv(KEY_FILE_VARIABLE, "mine.key")
    use_key_file("third.key")

    assert [*used, os.environ[KEY_FILE_VARIABLE]] == ["first.key", "second.key", "mine.key"]

"""A console on a stage: the real app on a real database, with the clock in the test's hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import OptionList

from agent_console.domain.ids import JobId
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.port import Repository, Topic
from agent_console.repository.postgres.live.changes import CHANNEL
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.operation_form import OperationForm
from agent_console.tui.link import Clock, Opening
from agent_console.tui.panes.list_pane import ListPane
from agent_console.tui.setup import Setup
from agent_console.tui.widgets.header import HeaderBar
from tests.support.fleet import AT, Fleet
from tests.support.serving import serving

ADMIN = "ana@example.com"
PATIENCE = 60.0
LOOK_SECONDS = 0.01

Say = Callable[[str], None]


def fixed_clock() -> datetime:
    return AT


@dataclass
class SteppingClock:
    """Stands still until the test moves it."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


def directly(dsn: str, *, team: str = "example", user: str = ADMIN) -> Opening:
    def opening(say: Say) -> AbstractAsyncContextManager[Repository]:
        return open_direct(dsn, team=team, user=user)

    return opening


def through(url: str, token: str) -> Opening:
    def opening(say: Say) -> AbstractAsyncContextManager[Repository]:
        return HttpRepository(url, token)

    return opening


def through_server(fleet: Fleet) -> Opening:
    """Brings its server along, so that it works in whichever event loop the app runs."""
    token = fleet.token(ADMIN)

    @asynccontextmanager
    async def opening(say: Say) -> AsyncIterator[Repository]:
        async with serving(fleet.working) as url, HttpRepository(url, token) as repository:
            yield repository

    return opening


def console(
    opening: Opening,
    *,
    profile: str = "example",
    production: bool = False,
    colour: str | None = None,
    read_only: bool = False,
    theme: str = "dark",
    start: str = "agents",
    clock: Clock = fixed_clock,
) -> ConsoleApp:
    setup = Setup(opening, profile, production, colour, read_only, theme, start)
    return ConsoleApp(lambda: setup, theme_name=theme, clock=clock)


async def until(holds: Callable[[], bool], what: str, *, within: float = PATIENCE) -> float:
    """Wait until something holds, and tell how many seconds that took."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not holds():
        assert loop.time() - begun < within, f"not within {within:g} s: {what}"
        await asyncio.sleep(LOOK_SECONDS)
    return loop.time() - begun


def app_of(pilot: Pilot[None]) -> ConsoleApp:
    assert isinstance(pilot.app, ConsoleApp)
    return pilot.app


def list_of(app: ConsoleApp) -> ListPane:
    """The list that stands in the console, whatever lies over it."""
    assert isinstance(app.pane, ListPane)
    return app.pane


def row_ids(pane: ListPane) -> list[str]:
    source = pane.table.source
    return [source.row_at(index).id for index in range(len(source))]


def cells(pane: ListPane, row_id: str) -> list[str]:
    index = pane.table.source.index_of(row_id)
    assert index is not None, f"{row_id} is not in the list"
    return [cell.plain for cell in pane.table.source.row_at(index).cells]


def shown_text(app: ConsoleApp) -> str:
    """What a reader of the screen reads, line by line."""
    screen = app.screen
    return "\n".join(strip.text.rstrip() for strip in screen._compositor.render_strips())


def has_list(app: ConsoleApp) -> bool:
    if not app.has_panes:
        return False
    return app.pane.has_answer


def has_detail(app: ConsoleApp) -> bool:
    """Nothing of the detail that is open, if one is, is still on its way."""
    return app.detail is None or app.detail.has_answer


async def until_on(app: ConsoleApp, screen: type[Screen[Any]]) -> None:
    await until(lambda: isinstance(app.screen, screen) and app.screen.is_mounted, f"{screen.__name__} is shown")


async def choose(app: ConsoleApp, pilot: Pilot[None], key: str, operation: str) -> None:
    """From a list to the form of an operation: with `a` on its row, or with `n` on the list itself."""
    await pilot.press(key)
    await until_on(app, ActionMenu)
    menu = app.screen.query_one(OptionList)
    menu.highlighted = menu.get_option_index(operation)
    await pilot.press("enter")
    await until_on(app, OperationForm)


def header_text(app: ConsoleApp) -> str:
    """The header of whichever screen is shown."""
    content = app.screen.query_one(HeaderBar).render()
    return content.plain


def has_pool(app: ConsoleApp) -> bool:
    facts = app.query_one(HeaderBar).facts
    return facts is not None and facts.pool is not None


async def loaded(pilot: Pilot[None]) -> ConsoleApp:
    """Wait for the first rows and the pool."""
    app = app_of(pilot)
    await until(lambda: has_list(app) and has_pool(app), "the list and the pool are shown")
    await pilot.pause()
    return app


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one by one, each when the list the one before it asked for is there."""
    app = app_of(pilot)
    for key in keys:
        await pilot.press(key)
        await until(lambda: has_list(app), f"the list after {key!r}")
        await pilot.pause()
        await until(lambda: has_detail(app), f"the detail after {key!r}")
        await pilot.pause()


def story_of(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await press(pilot, *keys)

    return story


def announce(fleet: Fleet, topic: Topic) -> None:
    """What every writer leaves with the announcer, for rows that a test has written itself."""
    notice = {"team": str(fleet.team_id()), "topic": topic.value, "ids": None}
    fleet.execute("select pg_notify(%s, %s)", CHANNEL, json.dumps(notice))


def all_jobs(fleet: Fleet) -> list[str]:
    """The whole list as it should be shown, from the database itself."""
    rows = fleet.execute("select id::text from jobs order by id desc")
    return [str(JobId(str(job_id))) for (job_id,) in rows]

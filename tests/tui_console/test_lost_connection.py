"""The connection is really lost, and really comes back: the console stays, says so, and heals by itself."""

import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_console.database.embedded_account import server_account
from agent_console.database.migrate import migrate
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import LinkState
from tests.support import clusters, example_fleet
from tests.support.clusters import Cluster, reachable_folder
from tests.support.fleet import AT, Fleet
from tests.support.serving import serving
from tests.tui_console.stage import (
    ADMIN,
    SteppingClock,
    console,
    directly,
    header_text,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    through,
    until,
)


def is_lost(app: ConsoleApp) -> bool:
    return app.link.status.state is LinkState.LOST


def is_up(app: ConsoleApp) -> bool:
    return app.link.status.state is LinkState.UP


async def test_a_server_that_goes_and_comes_back(fleet: Fleet) -> None:
    token, clock = fleet.token(ADMIN), SteppingClock(AT)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(serving(fleet.working))
        app = console(through(url, token), clock=clock)
        pilot = await stack.enter_async_context(app.run_test(size=(80, 24)))
        await loaded(pilot)
        await press(pilot, "3", "down", "space")
        rows, marks, cursor = row_ids(list_of(app)), list_of(app).table.marks, list_of(app).table.cursor_id

        await first.aclose()
        await pilot.press("r")
        await until(lambda: app.link.status.retries >= 2, "two retries")
        clock.now = AT + timedelta(minutes=5)
        await until(lambda: "5m old" in header_text(app), "the age of the data")

        assert "✗ lost, retry" in header_text(app)
        assert f"No server answers at {url}" in shown_text(app)
        assert list_of(app).table.stale
        assert row_ids(list_of(app)) == rows

        await stack.enter_async_context(serving(fleet.working, port=urlsplit(url).port or 0))
        await until(lambda: is_up(app), "up again")
        await until(lambda: "✓ connected" in header_text(app), "the header says so")
        await pilot.pause()

        assert not list_of(app).table.stale
        assert "No server answers" not in shown_text(app)
        assert (row_ids(list_of(app)), list_of(app).table.marks, list_of(app).table.cursor_id) == (
            rows,
            marks,
            cursor,
        )


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A cluster that may be killed."""
    with reachable_folder() as folder, clusters.cluster(18, folder) as running:
        migrate(running.dsn())
        example_fleet.fill(running.dsn(), AT)
        yield running


def kill(cluster: Cluster) -> list[int]:
    """Kill the server without warning; the answer is what still has to end with it."""
    server = int((cluster.layout.data / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    os.kill(server, signal.SIGKILL)
    return [server, *map(int, children)]


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def start_again(cluster: Cluster) -> None:
    programs = clusters._programs(cluster.version, server_account())
    assert programs is not None
    clusters._start(programs, cluster.layout)


async def test_a_database_that_is_killed_and_started_again(own_cluster: Cluster) -> None:
    fleet = Fleet(own_cluster.dsn())
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        rows = row_ids(list_of(app))

        processes = kill(own_cluster)
        await until(lambda: is_lost(app), "noticed without a key")
        await until(lambda: all(map(has_ended, processes)), "the last process of the server")
        await until(lambda: list_of(app).table.stale, "the list is dimmed")
        assert row_ids(list_of(app)) == rows

        start_again(own_cluster)
        await until(lambda: is_up(app), "up again")

        fleet.add_jobs(1, since="2100-01-01")
        await until(lambda: row_ids(list_of(app))[1:] == rows, "fresh data")


async def test_while_it_is_lost_the_list_keeps_its_group(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        rows = row_ids(list_of(app))
        fleet.execute("update users set is_active = false where email = %s", ADMIN)
        await pilot.press("r")
        await until(lambda: is_lost(app), "lost")

        await pilot.press("f")
        await until(lambda: bool(app.screen.query("Toast")), "the reason")

        assert row_ids(list_of(app)) == rows

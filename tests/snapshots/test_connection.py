"""Before there is a connection, and after it is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from textual.pilot import Pilot

from agent_console.repository.port import Repository
from agent_console.tui import link
from agent_console.tui.link import LinkState
from tests.snapshots.conftest import ROOMY, USUAL, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    ADMIN,
    Say,
    SteppingClock,
    app_of,
    console,
    directly,
    header_text,
    list_of,
    loaded,
    press,
    until,
)

BOTH = pytest.mark.sizes(USUAL, ROOMY)


@asynccontextmanager
async def never_ready(say: Say) -> AsyncIterator[Repository]:
    say("Starting PostgreSQL …")
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")
    yield


@BOTH
def test_starting(snap_compare: SnapCompare, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await until(lambda: bool(app_of(pilot).link.status.message), "progress is told")

    assert snap_compare(console(never_ready, profile="local"), terminal_size=size, run_before=story)


@BOTH
@pytest.mark.parametrize("keys", [(), ("3", "enter")], ids=["agents", "one-job"])
def test_lost(
    snap_compare: SnapCompare, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, size: Sizes, keys: tuple[str, ...]
) -> None:
    # The third retry is the last one for a while: the picture must not depend on when it is taken.
    monkeypatch.setattr(link, "PAUSE_SECONDS", (0.01, 0.01, 600.0))
    clock = SteppingClock(AT)

    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, *keys)
        fleet.execute("update users set is_active = false where email = %s", ADMIN)
        list_of(app).refetch()
        await until(lambda: app.link.status.retries == 3, "three retries")
        assert app.link.status.state is LinkState.LOST
        clock.now = AT + timedelta(minutes=3)
        await until(lambda: "3m old" in header_text(app), "the age of the data")
        # The news of the last retry may have moved the header's clock before the second that moves all ages.
        list_of(app).tick()
        if app.detail is not None:
            app.detail.tick()

    assert snap_compare(console(directly(fleet.working), clock=clock), terminal_size=size, run_before=story)

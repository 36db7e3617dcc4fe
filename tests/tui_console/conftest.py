"""Both ways to the data, for tests that hold for either."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from agent_console.repository.port import Repository
from agent_console.tui import app as app_module
from agent_console.tui.link import Opening
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.tui_console.stage import ADMIN, directly, through

SomebodyElse = Callable[[], AbstractAsyncContextManager[Repository]]


@pytest.fixture(params=["direct", "http"])
async def opening(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[Opening]:
    """The console's way in: directly, or through a real server on a real socket."""
    async with AsyncExitStack() as stack:
        if request.param == "direct":
            yield directly(fleet.working)
        else:
            url = await stack.enter_async_context(serving(fleet.working))
            yield through(url, fleet.token(ADMIN))


@pytest.fixture
def somebody_else(opening: Opening) -> SomebodyElse:
    """A second repository on the same fleet, the same way in."""
    return lambda: opening(lambda message: None)


@pytest.fixture
def nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is told comes on the screen: on a busy machine the next look could pass for a notice."""
    monkeypatch.setattr(app_module, "POLL_SECONDS", 3600.0)

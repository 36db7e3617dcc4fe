"""The ways to the data: the contract suite shows that both answer alike, so most tests go the shorter one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from agent_console.repository.port import Repository
from agent_console.tui import app as app_module
from agent_console.tui.link import Opening
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.tui_console.stage import ADMIN, directly, through

SomebodyElse = Callable[[], AbstractAsyncContextManager[Repository]]


BOTH_WAYS = pytest.mark.parametrize("opening", ["direct", "http"], indirect=True)
"""For tests about the connection itself."""


@pytest.fixture
async def opening(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[Opening]:
    """The console's way in: directly, or through a real server on a real socket."""
    if getattr(request, "param", "direct") == "direct":
        yield directly(fleet.working)
    else:
        async with serving(fleet.working) as url:
            yield through(url, fleet.token(ADMIN))


@pytest.fixture
def somebody_else(opening: Opening) -> SomebodyElse:
    """A second repository on the same fleet, the same way in."""
    return lambda: opening(lambda message: None)


@pytest.fixture
def nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is told comes on the screen: on a busy machine the next look could pass for a notice."""
    monkeypatch.setattr(app_module, "POLL_SECONDS", 3600.0)

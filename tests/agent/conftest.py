"""The stage that every test of an agent plays on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.agent.stage import Stage
from tests.queue.crew import EMPTY
from tests.support.fleet import Fleet


@pytest.fixture
async def stage(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", "A" * 43)
    fleet.execute(EMPTY)
    async with AsyncExitStack() as stack:
        stage = Stage(fleet, stack)
        await stage.start_server()
        yield stage

"""The crew: directly, and through a real server on a real socket."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import EMPTY, Crew
from tests.support.fleet import Fleet
from tests.support.serving import serving

OPERATOR = "ole@example.com"
SERVER_KEY = "A" * 43


@asynccontextmanager
async def _direct(fleet: Fleet) -> AsyncIterator[Crew]:
    backend = Backend(fleet.working)

    async def with_secret(secret: Secret) -> Repository:
        return PostgresRepository(backend, by_token(secret))

    try:
        yield Crew(fleet, PostgresRepository(backend, by_name("example", OPERATOR)), with_secret)
    finally:
        await backend.close()


@asynccontextmanager
async def _over_http(fleet: Fleet) -> AsyncIterator[Crew]:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(fleet.working))

        async def with_secret(secret: Secret) -> Repository:
            return await stack.enter_async_context(HttpRepository(url, secret.word))

        operator = await stack.enter_async_context(HttpRepository(url, fleet.token(OPERATOR)))
        yield Crew(fleet, operator, with_secret)


@pytest.fixture
def quiet(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """The fleet with nothing in its queue."""
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", SERVER_KEY)
    fleet.execute(EMPTY)
    return fleet


@pytest.fixture(params=["direct", "http"])
async def crew(request: pytest.FixtureRequest, quiet: Fleet) -> AsyncIterator[Crew]:
    """The contract: every test that asks for it runs against both repositories."""
    async with (_over_http if request.param == "http" else _direct)(quiet) as crew:
        yield crew


@pytest.fixture
async def direct_crew(quiet: Fleet) -> AsyncIterator[Crew]:
    async with _direct(quiet) as crew:
        yield crew

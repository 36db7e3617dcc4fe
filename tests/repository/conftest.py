"""The contract: every test that asks for `open_repository` runs against both implementations."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.support.asking import Callers, callers
from tests.support.fleet import Fleet
from tests.support.serving import serving

OpenRepository = Callable[..., Awaitable[Repository]]
ADMIN = "ana@example.com"
OPERATOR = "ole@example.com"
VIEWER = "vera@example.com"


@pytest.fixture(params=["direct", "http"])
async def open_repository(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[OpenRepository]:
    """Opens the repository as a person of the fleet: directly, or through a real server on a real socket."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(fleet.working)) if request.param == "http" else None

        async def opened(email: str = ADMIN, team: str = "example") -> Repository:
            repository: Repository
            if url is None:
                repository = open_direct(fleet.working, team=team, user=email)
            else:
                repository = HttpRepository(url, fleet.token(email))
            return await stack.enter_async_context(repository)

        yield opened


@pytest.fixture
async def repository(open_repository: OpenRepository) -> Repository:
    """The administrator's repository."""
    return await open_repository()


@pytest.fixture(params=["direct", "http"])
async def crew(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[Callers]:
    """Everybody of the fleet as a caller: people and agents that ask each other."""
    async with callers(fleet, request.param) as everybody:
        yield everybody

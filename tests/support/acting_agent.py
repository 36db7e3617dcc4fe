"""An agent of the fleet as a caller, with a key of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import PostgresRepository
from tests.support.fleet import Fleet
from tests.support.serving import serving


@asynccontextmanager
async def acting_agent(like: Repository, fleet: Fleet, name: str = "atlas") -> AsyncIterator[Repository]:
    """The agent's view, through the same kind of repository as `like`."""
    secret = Secret.mint(fleet.team_id(), fleet.agent_id(name))
    fleet.execute("update agents set api_key_hash = %s where name = %s", secret.hash, name)
    if isinstance(like, PostgresRepository):
        yield PostgresRepository(like.backend, by_token(secret))
        return
    async with serving(fleet.working) as url, HttpRepository(url, secret.word) as over_http:
        yield over_http

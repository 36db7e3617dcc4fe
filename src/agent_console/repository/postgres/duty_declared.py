"""A duty: what somebody has to do again and again while time passes, whichever process it is."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.ids import Id, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.repository import Backend

# Gone with the transaction, so that it works behind a pooler too. Each duty has its own, so that none waits for
# another.
TURN = text("select pg_try_advisory_xact_lock(hashtext('agent_console.duties'), hashtext(:duty))")


@dataclass(frozen=True)
class Duty:
    """`round` does what is due just now, unless another process is at it, and tells how many rows it changed.

    It must be safe to repeat and to be cut short at any place.
    """

    name: str
    every_seconds: float
    round: Callable[[Backend], Awaitable[int]]


@asynccontextmanager
async def in_turn(backend: Backend, duty: str) -> AsyncIterator[AsyncConnection | None]:
    """A transaction in which nobody else does this duty; None when somebody else is doing it."""
    async with backend.database.changing() as connection:
        yield connection if (await connection.execute(TURN, {"duty": duty})).scalar_one() else None


def announce_all(backend: Backend, team_id: TeamId, topic: Topic, rows: Iterable[Id]) -> None:
    for row in rows:
        backend.announcer.announce(team_id, topic, row)

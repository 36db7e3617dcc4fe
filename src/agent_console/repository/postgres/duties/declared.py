"""A duty: what somebody has to do again and again while time passes, whichever process it is."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.duties import DutyRule
from agent_console.domain.errors import ConsoleError, DatabaseUnavailable, SchemaMismatch
from agent_console.domain.ids import Id, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.repository import Backend

# Gone with the transaction, so that it works behind a pooler too. Each duty has its own, so that none waits for
# another. A process that is stopped in its turn loses it soon, so that another can go on.
TURN = text("""
    select pg_try_advisory_xact_lock(hashtext('agent_console.duties'), hashtext(:duty))
       and set_config('idle_in_transaction_session_timeout', :patience, true) is not null
""")
PATIENCE = "5s"


@dataclass(frozen=True)
class Duty:
    """`round` does what is due just now and tells how many rows it changed; None when another process was at it.

    It must be safe to repeat and to be cut short at any place.
    """

    name: str
    every_seconds: float
    round: Callable[[Backend], Awaitable[int | None]]

    @classmethod
    def of(cls, rule: DutyRule, round: Callable[[Backend], Awaitable[int | None]]) -> "Duty":
        return cls(rule.name, rule.every_seconds, round)


@asynccontextmanager
async def in_turn(backend: Backend, duty: str) -> AsyncIterator[AsyncConnection | None]:
    """A transaction in which nobody else does this duty; None when somebody else is doing it."""
    async with backend.database.changing() as connection:
        mine = await connection.execute(TURN, {"duty": duty, "patience": PATIENCE})
        yield connection if mine.scalar_one() else None


async def for_each_team(
    backend: Backend,
    teams: TextClause,
    step: Callable[[Backend, TeamId], Awaitable[int | None]],
    batch: int,
) -> int | None:
    """Do the step for every team that has something due, again while it finds a whole batch."""

    async def batches(team_id: TeamId) -> AsyncIterator[int | None]:
        full = True
        while full:
            done = await backend.database.within_time(step(backend, team_id))
            yield done
            full = done == batch

    return await each_by_itself(await backend.database.within_time(_due(backend, teams)), batches)


async def each_by_itself(
    teams: Iterable[TeamId], batches: Callable[[TeamId], AsyncIterator[int | None]]
) -> int | None:
    """How many rows that were, or none when another process is at it.

    What fails for one team is told when all others had their turn; without a database there is none.
    """
    rows, failed = 0, None
    for team_id in teams:
        try:
            async for done in batches(team_id):
                if done is None:
                    return rows or None
                rows += done
        except (DatabaseUnavailable, SchemaMismatch):
            raise
        except ConsoleError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return rows


async def _due(backend: Backend, teams: TextClause) -> list[TeamId]:
    async with backend.database.reading() as connection:
        return [TeamId.of(row.team_id) for row in await connection.execute(teams)]


def announce_all(backend: Backend, team_id: TeamId, topic: Topic, rows: Iterable[Id]) -> None:
    for row in rows:
        backend.announcer.announce(team_id, topic, row)

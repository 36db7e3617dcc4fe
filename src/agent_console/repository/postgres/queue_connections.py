"""The queue's own few connections: plain psycopg, because a claim is too short to pay for more."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.conninfo import make_conninfo
from psycopg.rows import namedtuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agent_console.domain.errors import DatabaseUnavailable
from agent_console.repository.postgres.database import Database, connection_settings

# Every statement here is the same each time, and a plan of its own costs more than running it. All of them go by
# key: a plan that was made while the queue was empty must still be right when it holds a million.
PLANNED_ONCE = " ".join(
    f"-c {setting}"
    for setting in (
        "plan_cache_mode=force_generic_plan",
        *("enable_seqscan=off", "enable_bitmapscan=off", "enable_hashjoin=off", "enable_mergejoin=off"),
    )
)


class QueueConnections:
    """Opened when the first statement comes; a connection that broke is replaced by the next who asks."""

    def __init__(self, database: Database, *, at_most: int = 6) -> None:
        self._database = database
        given = connection_settings(database.dsn)
        given["options"] = f"{PLANNED_ONCE} {given['options']}"
        self._pool = AsyncConnectionPool(
            make_conninfo("", **given),
            min_size=0,
            max_size=at_most,
            open=False,
            timeout=5.0,
            reconnect_timeout=5.0,
            kwargs={"autocommit": True, "row_factory": namedtuple_row, "prepare_threshold": 0},
        )
        self._opened = False

    async def rows(self, statement: str, facts: Mapping[str, object]) -> Sequence[Any]:
        """Run one statement, which is its own transaction."""
        return await self._database.within_time(self._rows(statement, facts))

    async def _rows(self, statement: str, facts: Mapping[str, object]) -> Sequence[Any]:
        if not self._opened:
            # Also says clearly when there is no database, or not the schema we know.
            async with self._database.reading():
                pass
            if not self._opened:
                self._opened = True
                await self._pool.open()
        try:
            async with self._pool.connection() as connection:
                return await (await connection.execute(statement, facts)).fetchall()
        except PoolTimeout as error:
            raise DatabaseUnavailable(f"The database {self._database.place} can't be reached.") from error

    async def close(self) -> None:
        if self._opened:
            await self._pool.close(timeout=2.0)

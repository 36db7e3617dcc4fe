"""The queue's own few connections: plain psycopg, because a claim is too short to pay for more."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import namedtuple_row

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
WAIT_SECONDS = 5.0
AT_MOST = 6


class QueueConnections:
    """Opened when somebody needs one more; a connection on which something went wrong is not used again.

    Whoever waits here may go away at any moment: they take a connection themselves and are handed none, so that
    nobody can be left with what another waits for. Pools that hand connections over have lost some that way, or
    stood still.
    """

    def __init__(self, database: Database, *, at_most: int = AT_MOST) -> None:
        self._database = database
        given = connection_settings(database.dsn, pooled=database.pooled)
        if not database.pooled:
            given["options"] = f"{PLANNED_ONCE} {given['options']}"
        self._prepare_threshold = None if database.pooled else 0
        self._conninfo = make_conninfo("", **given)
        self._places = asyncio.Semaphore(at_most)
        self._free: list[AsyncConnection[Any]] = []
        self._closed = False

    async def rows(self, statement: str, facts: Mapping[str, object]) -> Sequence[Any]:
        """Run one statement, which is its own transaction."""
        return await self._database.within_time(self._rows(statement, facts))

    async def _rows(self, statement: str, facts: Mapping[str, object]) -> Sequence[Any]:
        if self._database.schema.is_due:
            # Also says clearly when there is no database, or not a schema that serves us.
            async with self._database.reading():
                pass
        await self._place()
        try:
            return await self._asked(statement, facts)
        finally:
            self._places.release()

    async def _place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable(
                f"The database {self._database.place} can't be reached: all our connections are waiting for it.",
                hint="Nothing was asked of it. Try again; if it lasts: agent-console doctor",
            ) from error

    async def _asked(self, statement: str, facts: Mapping[str, object]) -> Sequence[Any]:
        connection = self._free.pop() if self._free else await self._connected()
        try:
            found = await (await connection.execute(statement, facts)).fetchall()
        except BaseException as error:
            if connection.broken and not isinstance(error, asyncio.CancelledError):
                # Whatever cut this one has cut the others that lie here: nobody has to find that out again.
                await self._close_free()
            await connection.close()
            raise
        if self._closed:
            await connection.close()
        else:
            self._free.append(connection)
        return found

    async def _connected(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(
            self._conninfo,
            autocommit=True,
            row_factory=namedtuple_row,
            prepare_threshold=self._prepare_threshold,
        )

    async def close(self) -> None:
        self._closed = True
        await self._close_free()

    async def _close_free(self) -> None:
        while self._free:
            await self._free.pop().close()

"""The connection to PostgreSQL: one pool, sane timeouts, and answers that never wait for a dead server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agent_console.database.address import parsed, place, sqlalchemy_url
from agent_console.domain.errors import LOOK_FIRST, ConsoleError, DatabaseUnavailable, SchemaMismatch, TimedOut
from agent_console.repository.postgres.failures import as_console_error
from agent_console.repository.postgres.schema_watch import SchemaWatch

ANSWER_SECONDS = 10.0

# A cut line is noticed in seconds, and no session of ours can hold a snapshot or a lock for long. What PostgreSQL
# planned while a table was empty it may keep for the life of a session (references are looked up so), and reading
# all of a table that has grown since would make every new row dearer than the last: so it goes by an index.
CONNECTION_SETTINGS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
    "application_name": "agent-console",
}
SESSION_SETTINGS = " ".join(
    f"-c {setting}"
    for setting in (
        "statement_timeout=8s",
        "idle_in_transaction_session_timeout=15s",
        "timezone=UTC",
        "enable_seqscan=off",
    )
)

NEXT_MONTH = text("select make_audit_months(1)")

Answer = TypeVar("Answer")


def connection_settings(dsn: str, *, pooled: bool = False) -> dict[str, str]:
    """What the DSN says, over our defaults; its own `options` come last and win. Only the encoding is ours alone:
    words are of any language, and the hashes of the trail are taken over UTF-8.

    A pooler lends one session to many: it refuses settings of a session, so there the login's own settings count.
    """
    given = parsed(dsn) | {"client_encoding": "UTF8"}
    if pooled:
        return CONNECTION_SETTINGS | given
    options = f"{SESSION_SETTINGS} {given.get('options', '')}".strip()
    return CONNECTION_SETTINGS | given | {"options": options}


class Database:
    """Opens connections when they are needed; making one of these touches no network.

    `own_dsn` is given when `dsn` leads to a transaction pooler: the address of the database itself, for what needs
    a session of its own.
    """

    def __init__(
        self,
        dsn: str,
        *,
        own_dsn: str | None = None,
        pool_size: int = 4,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.dsn = dsn
        self.own_dsn = own_dsn or dsn
        self.pooled = own_dsn is not None
        self._answer_seconds = answer_seconds
        self._engine: AsyncEngine = create_async_engine(
            sqlalchemy_url(dsn),
            # A statement that was prepared in one session of a pooler is unknown in the next.
            connect_args={
                **connection_settings(dsn, pooled=self.pooled),
                **({"prepare_threshold": None} if self.pooled else {}),
            },
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=answer_seconds,
            pool_pre_ping=True,
            hide_parameters=True,
            # No extension is used, so nobody need look for the type of one before the first answer.
            use_native_hstore=False,
        )
        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self.schema = SchemaWatch()
        self._months_made_on: date | None = None
        self._abandoned: set[asyncio.Task[object]] = set()

    @property
    def place(self) -> str:
        return place(self.dsn)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Single statements, each its own transaction: no snapshot outlives its answer."""
        async with self._reading.connect() as connection:
            await self.schema.require(connection)
            yield connection

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncConnection]:
        async with self.before_changing() as connection, self.begun(connection):
            yield connection

    @asynccontextmanager
    async def before_changing(self) -> AsyncIterator[AsyncConnection]:
        """Single statements too, until the transaction is begun: what they write stays, whatever becomes of it."""
        async with self.reading() as connection:
            await self._require_audit_months(connection)
            yield connection

    @asynccontextmanager
    async def begun(self, connection: AsyncConnection) -> AsyncIterator[None]:
        await connection.commit()
        await connection.execution_options(isolation_level="READ COMMITTED")
        async with connection.begin():
            yield

    async def within_time(self, answer: Awaitable[Answer], seconds: float | None = None) -> Answer:
        """Wait for an answer, but not for a server that is frozen. Some answers are known to take longer.

        Cancelling a query asks the server, which may not answer either; so a late task is told to stop and
        left to end by itself, together with its connection.
        """
        seconds = self._answer_seconds if seconds is None else seconds
        task = asyncio.ensure_future(answer)
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        if not done:
            self.schema.forget()
            self._abandon(task)
            raise TimedOut(
                f"The database {self.place} did not answer within {seconds:g} s.",
                hint=LOOK_FIRST,
            )
        try:
            return task.result()
        except ConsoleError:
            raise
        except Exception as error:
            meant = as_console_error(error, self.dsn)
            if isinstance(meant, (DatabaseUnavailable, SchemaMismatch)):
                self.schema.forget()
            raise meant from error

    def _abandon(self, task: "asyncio.Future[Answer]") -> None:
        task.cancel()
        if isinstance(task, asyncio.Task):
            self._abandoned.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()

    async def _require_audit_months(self, connection: AsyncConnection) -> None:
        """A month without a partition would fail every change, so the next one is looked after daily."""
        today = datetime.now(UTC).date()
        if self._months_made_on == today:
            return
        await connection.execute(NEXT_MONTH)
        await connection.commit()
        self._months_made_on = today

    async def close(self) -> None:
        for task in tuple(self._abandoned):
            task.cancel()
        await self._engine.dispose()

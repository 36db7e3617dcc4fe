"""The repository that speaks to PostgreSQL directly: every rule that needs the database is kept here."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from typing import Any, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console import __version__
from agent_console.domain.audit import NOWHERE, Place
from agent_console.domain.identity import Caller
from agent_console.domain.permissions import require_permission
from agent_console.repository.logs import Followed, Log, Row
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Change
from agent_console.repository.postgres.answering import handler_of
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.identify import Identify, by_name
from agent_console.repository.postgres.live.changes import Announcer, Listener
from agent_console.repository.postgres.live.following import rows_read
from agent_console.repository.postgres.live.hearing import changes_told
from agent_console.repository.postgres.live.standing import secret_of
from agent_console.repository.postgres.own_pace import own_pace_of
from agent_console.repository.postgres.queue.connections import AT_MOST, QueueConnections
from agent_console.repository.postgres.queue.queue import Queue
from agent_console.repository.postgres.registry.presence import Heartbeats
from agent_console.repository.postgres.work import Work

Given = TypeVar("Given")


class Backend:
    """What all callers of one process share: the pool, the ear and the voice.

    With a `listen_dsn` the other one may lead to a transaction pooler, which has no ear.
    """

    def __init__(
        self, dsn: str, *, listen_dsn: str | None = None, pool_size: int = 4, queue_connections: int = AT_MOST
    ) -> None:
        self.database = Database(dsn, own_dsn=listen_dsn, pool_size=pool_size)
        self.connections = QueueConnections(self.database, at_most=queue_connections)
        self.announcer = Announcer(self.connections)
        self.listener = Listener(self.database.own_dsn, self.connections, self.announcer.voice)
        self.announcer.tell_here(self.listener.hear_here)
        self.heartbeats = Heartbeats(self.database, self.announcer)
        self.queue = Queue(self.connections, self.announcer, self.listener)

    async def ready(self) -> None:
        """Raise what keeps us from working: no database, or not the schema we know."""
        async with self.database.reading():
            pass

    async def close(self) -> None:
        await self.listener.close()
        await self.heartbeats.close()
        await self.queue.close()
        await self.announcer.close()
        await self.connections.close()
        await self.database.close()


class PostgresRepository:
    """One caller's view of the database."""

    def __init__(
        self, backend: Backend, identify: Identify, *, place: Place = NOWHERE, owns_backend: bool = False
    ) -> None:
        self._backend = backend
        self._identify = identify
        self._place = place
        self._owns_backend = owns_backend

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def identify(self) -> Identify:
        return self._identify

    @property
    def place(self) -> Place:
        return self._place

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        if (at_own_pace := own_pace_of(operation)) is not None:
            answer: Answered = await at_own_pace(self, request)
            return answer
        return await self.in_one_transaction(operation, handler_of(operation), request)

    async def in_one_transaction(
        self,
        operation: Operation[Asked, Any],
        handler: Callable[[Work, Asked], Awaitable[Given]],
        request: Asked,
        *,
        seconds: float | None = None,
    ) -> Given:
        """Let the handler work for the caller, who must have the right to the operation."""
        return await self._backend.database.within_time(self._answer(operation, handler, request), seconds)

    async def _answer(
        self,
        operation: Operation[Asked, Any],
        handler: Callable[[Work, Asked], Awaitable[Given]],
        request: Asked,
    ) -> Given:
        """Whoever was there is written down before anything is begun: a refusal does not undo it, and nobody waits
        for somebody else while holding his own row."""
        database, changes = self._backend.database, operation.changes or operation.tells
        async with database.before_changing() if changes else database.reading() as connection:
            caller = None if operation.public else await self._identify(connection)
            if caller is not None and operation.permission is not None:
                require_permission(caller.role, operation.permission, operation.name)
            work = Work(connection, caller, self._place)
            async with database.begun(connection) if changes else nullcontext():
                answer = await handler(work, request)
        for notice in work.notices:
            self._backend.announcer.tell(work.caller.team_id, notice)
        return answer

    async def changes(self) -> AsyncGenerator[Change, None]:
        async with aclosing(self.gathered_changes()) as gathered:
            async for changes in gathered:
                for change in changes:
                    yield change

    def gathered_changes(self) -> AsyncGenerator[tuple[Change, ...], None]:
        """The same notices, those together that were waiting together; the first are none, once the caller is
        known."""
        return changes_told(self._backend.listener, self.caller, secret_of(self._identify))

    async def follow(self, log: Log[Row], after: int | None = None) -> AsyncGenerator[Followed[Row], None]:
        async with aclosing(self.gathered_rows(log, after)) as gathered:
            async for rows in gathered:
                for row in rows:
                    yield row

    def gathered_rows(self, log: Log[Row], after: int | None) -> AsyncGenerator[tuple[Followed[Row], ...], None]:
        """The same rows, those together that were read together."""
        return rows_read(self, log, after)

    async def caller(self) -> Caller:
        """Who calls, as the database knows them now."""
        return await self._backend.database.within_time(self._identified())

    def remembering(self, known: Callable[[], Caller]) -> "PostgresRepository":
        """For whoever has just asked who calls, and will ask again: the same view without a look-up each time."""

        async def identify(connection: AsyncConnection) -> Caller:
            return known()

        return PostgresRepository(self._backend, identify, place=self._place)

    async def _identified(self) -> Caller:
        async with self._backend.database.reading() as connection:
            return await self._identify(connection)

    async def close(self) -> None:
        if self._owns_backend:
            await self._backend.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def open_direct(
    dsn: str, *, listen_dsn: str | None = None, team: str | None = None, user: str | None = None
) -> PostgresRepository:
    """A direct session for one person; the first call makes the first connection."""
    place = Place(user_agent=f"agent-console {__version__}")
    backend = Backend(dsn, listen_dsn=listen_dsn)
    return PostgresRepository(backend, by_name(team, user), place=place, owns_backend=True)

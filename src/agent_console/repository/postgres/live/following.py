"""Follow a log: rows are read by the operations that page through it, whenever something may have come.

A notice is only the sign to look. What is sent, and to whom, is decided by reading; so nothing is lost when a
notice is, nothing is sent twice, and a right that was taken away ends the reading.
"""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import BaseModel

from agent_console.domain.errors import ConsoleError
from agent_console.domain.permissions import GRANTS, Permission
from agent_console.repository.logs import Followed, Log, LogName, Row
from agent_console.repository.port import Topic
from agent_console.repository.postgres.live.changes import Listener
from agent_console.repository.postgres.live.log_reading import READ, Part
from agent_console.repository.postgres.live.notices import Notice
from agent_console.repository.postgres.live.overlooked import LogReader
from agent_console.repository.postgres.live.standing import secret_of

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# What may have put something into a log; of threads and jobs only their own notices count.
SIGNS = {
    LogName.MESSAGES: frozenset({Topic.MESSAGES, Topic.THREADS}),
    LogName.JOB_EVENTS: frozenset({Topic.JOBS}),
    LogName.APPROVALS: frozenset({Topic.AUDIT}),
    LogName.AUDIT: frozenset({Topic.AUDIT}),
}


def concerns(log: Log[Any], notice: Notice) -> bool:
    if notice.topic not in SIGNS[log.name]:
        return False
    return log.thing is None or notice.id is None or notice.id == log.thing


async def rows_read(
    repository: "PostgresRepository", log: Log[Row], after: int | None
) -> AsyncGenerator[tuple[Followed[Row], ...], None]:
    """Those together that were read together; the first is the position at which the reading began."""
    caller = await repository.caller()
    reader = LogReader(
        caller.team_id,
        caller,
        secret_of(repository.identify),
        wants=lambda notice: concerns(log, notice),
        reads_itself=True,
        log=log,
    )
    with repository.backend.listener.reading(reader):
        reading = repository.remembering(lambda: reader.caller or caller)
        part = await READ[log.name](reading, log, after)
        yield (Followed(part.reached if after is None else after),)
        while True:
            if part.rows and _hold(part.rows, log.row):
                yield part.rows
            reader.position = part.reached
            if (reader.doubted or not part.more) and await reader.next() is None:
                reader.settle(await repository.caller())
            part = await _next_part(reading, reader, part.reached)


async def _next_part(reading: "PostgresRepository", reader: LogReader, after: int) -> Part:
    """Read by somebody for all who may read it, or else for the reader alone, with every rule."""
    log, listener = reader.log, reading.backend.listener

    async def read() -> Part:
        return await READ[log.name](reading, log, after)

    if log.thing is None or not await _may_share(listener, reader):
        return await read()
    try:
        return await listener.shared_reads.part((reader.team_id, log.thing), after, read)
    except ConsoleError:
        return await read()


async def _may_share(listener: Listener, reader: LogReader) -> bool:
    if reader.caller is None:
        return False
    if reader.log.thread_id is None:
        return Permission.SEE_FLEET in GRANTS[reader.caller.role]
    readers = await listener.book.readers((reader.team_id, reader.log.thread_id))
    return readers.include(reader.caller)


def _hold(rows: tuple[Followed[BaseModel], ...], kind: type[Row]) -> TypeGuard[tuple[Followed[Row], ...]]:
    return all(isinstance(followed.row, kind) for followed in rows)

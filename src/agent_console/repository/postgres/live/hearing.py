"""Live changes for one caller, who is told only what they may see, for as long as they may."""

from collections.abc import AsyncGenerator, Awaitable, Callable

from agent_console.domain.identity import Caller
from agent_console.domain.secrets import Secret
from agent_console.repository.port import REFETCH, Change
from agent_console.repository.postgres.live.changes import Listener
from agent_console.repository.postgres.live.stream_reader import StreamReader

Identified = Callable[[], Awaitable[Caller]]


async def changes_told(
    listener: Listener, identified: Identified, secret: Secret | None
) -> AsyncGenerator[tuple[Change, ...], None]:
    caller = await identified()
    with listener.reading(StreamReader(caller.team_id, caller, secret)) as reader:
        yield ()
        while True:
            changes = await reader.next()
            if changes is not None:
                yield changes
            elif reader.settle(await identified()):
                yield (REFETCH,)

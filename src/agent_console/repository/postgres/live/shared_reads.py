"""What many followers of one log read is read once.

Rows of a thread or of a job's story are the same for everybody who may read them, so whoever goes on from the same
position takes the same part. A part is as new as the last sign that something came: each sign ends its use.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from agent_console.domain.ids import Id, TeamId
from agent_console.repository.postgres.live.log_reading import Part

KEPT = 256
# Followers stand at the end; who reads a whole log from its beginning leaves nothing behind.
PARTS_KEPT = 4

Key = tuple[TeamId, Id]


class SharedReads:
    def __init__(self) -> None:
        self._parts: OrderedDict[Key, dict[int, asyncio.Task[Part]]] = OrderedDict()

    def touch(self, key: Key) -> None:
        """Something may have come: who reads from here on reads anew."""
        if self._parts:
            self._parts.pop(key, None)

    def touch_all(self) -> None:
        self._parts.clear()

    async def part(self, key: Key, after: int, read: Callable[[], Awaitable[Part]]) -> Part:
        parts = self._parts.setdefault(key, {})
        self._parts.move_to_end(key)
        if len(self._parts) > KEPT:
            self._parts.popitem(last=False)
        if (reading := parts.get(after)) is None:
            reading = parts[after] = asyncio.ensure_future(_read(read))
            reading.add_done_callback(_looked_at)
            if len(parts) > PARTS_KEPT:
                del parts[next(iter(parts))]
        return await asyncio.shield(reading)


async def _read(read: Callable[[], Awaitable[Part]]) -> Part:
    return await read()


def _looked_at(reading: "asyncio.Task[Part]") -> None:
    """Whoever waited for it may be gone; a failure is theirs alone."""
    if not reading.cancelled():
        reading.exception()

"""What a job says while it runs, on its way to the server: in batches, bounded, and never waited for."""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from pydantic import JsonValue, ValidationError

from agent_console.agent.held import HeldJob
from agent_console.agent.storable import NotJson, storable_facts, storable_text
from agent_console.domain.kinds import EventLevel
from agent_console.domain.redact import redact
from agent_console.domain.working import EVENTS_PER_CALL, TEXT_LENGTH, EventLine, JobProgress

BATCH_BYTES = 8_192
"""So much does not wait for more."""
CALL_BYTES = 65_536
"""So much goes at once when the server was slow."""
BUFFER_BYTES = 1_000_000
# A line takes more than its text, both here and on its way.
LINE_COST = 64


class JobOutput:
    """The lines and the newest progress of one job.

    A server that is slow or away costs lines, never memory: when the buffer is full new lines are counted and left
    out, and a line at their place tells how many.
    """

    def __init__(self, held: HeldJob, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._held = held
        self._buffer_bytes = buffer_bytes
        self._waiting: deque[tuple[EventLine, int]] = deque()
        """Each with its cost."""
        self._waiting_bytes = 0
        self._left_out = 0
        self._progress: JobProgress | None = None
        self._something, self._enough = asyncio.Event(), asyncio.Event()
        self._closing = False
        self._sending = asyncio.create_task(self._send())

    def add(self, message: str, level: EventLevel, payload: dict[str, JsonValue] | None = None) -> None:
        if self._waiting_bytes >= self._buffer_bytes:
            self._left_out += 1
            return
        for line in _events(message, level, payload):
            self._mark_gap()
            self._put(line)

    def progress(self, progress: JobProgress) -> None:
        """Replaces what was said before and is not on its way yet."""
        self._progress = progress
        self._something.set()

    async def close(self, *, within: float | None = None) -> None:
        """Send what is left, for as long as it takes or for so many seconds."""
        self._mark_gap()
        self._closing = True
        self._something.set()
        self._enough.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._sending

    def abandon(self) -> None:
        self._sending.cancel()

    def _put(self, line: EventLine) -> None:
        cost = _cost(line)
        self._waiting.append((line, cost))
        self._waiting_bytes += cost
        self._something.set()
        if self._waiting_bytes >= BATCH_BYTES:
            self._enough.set()

    def _mark_gap(self) -> None:
        if not self._left_out:
            return
        lines = "1 line was" if self._left_out == 1 else f"{self._left_out:,} lines were"
        self._left_out = 0
        words = f"{lines} left out here: the server did not take them as fast as they came."
        self._put(EventLine(level=EventLevel.WARN, message=words))

    async def _send(self) -> None:
        while not (self._held.is_lost or (self._closing and not self._unsent)):
            await self._something.wait()
            if not self._enough.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._held.pace.batch_seconds):
                        await self._enough.wait()
            progress, self._progress = self._progress, None
            if progress is not None:
                await self._held.say_progress(progress)
            if batch := self._batch():
                await self._held.log_lines(batch)
                self._forget(batch)
            if not self._closing and not self._unsent:
                self._something.clear()

    @property
    def _unsent(self) -> bool:
        return bool(self._waiting) or self._progress is not None

    def _batch(self) -> tuple[EventLine, ...]:
        """The oldest line, whatever it costs, and as many more as go into one call with it.

        They stay in the buffer until they have been taken.
        """
        batch: list[EventLine] = []
        left = CALL_BYTES
        for line, cost in islice(self._waiting, EVENTS_PER_CALL):
            left -= cost
            if batch and left < 0:
                break
            batch.append(line)
        return tuple(batch)

    def _forget(self, batch: tuple[EventLine, ...]) -> None:
        for _ in batch:
            _, cost = self._waiting.popleft()
            self._waiting_bytes -= cost
        if self._waiting_bytes < BATCH_BYTES and not self._closing:
            self._enough.clear()


def _cost(line: EventLine) -> int:
    payload = 0 if line.payload is None else len(json.dumps(line.payload))
    return len(line.message) + payload + LINE_COST


def _events(message: str, level: EventLevel, payload: dict[str, JsonValue] | None) -> Iterator[EventLine]:
    """A long message goes into several lines. Secrets are taken out before it is divided."""
    text = redact(storable_text(message))
    try:
        facts = None if payload is None else storable_facts(payload)
    except NotJson as error:
        facts = None
        yield EventLine(level=EventLevel.WARN, message=f"The payload of the next line was left out: it {error}.")
    for start in range(0, len(text), TEXT_LENGTH):
        part = text[start : start + TEXT_LENGTH]
        if part.strip():
            try:
                yield EventLine(level=level, message=part, payload=facts)
            except ValidationError:
                yield EventLine(level=EventLevel.WARN, message="A line could not be told as it was.")
        facts = None

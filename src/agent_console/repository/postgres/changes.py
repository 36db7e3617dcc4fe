"""Live changes over LISTEN and NOTIFY: one voice and one ear per process.

A notice in every inserting transaction would cost writers most of their speed (they queue for one lock), so
writers only leave a word with the announcer, which says it for all of them at most every 50 ms, and less often
while there is always something. A notice that gets lost costs a reader some freshness, never truth: readers look
again by themselves.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import make_conninfo

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import Id, TeamId
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.database import connection_settings
from agent_console.repository.postgres.queue_connections import QueueConnections

CHANNEL = "agent_console_changes"
GATHER_SECONDS = 0.05
GATHER_SECONDS_BUSY = 0.2
NAMED_AT_MOST = 50
WAITING_AT_MOST = 1000
RECONNECT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)

# What a person watches. That a job may be claimed concerns only those who wait for one.
FOR_PEOPLE = frozenset(Topic) - {Topic.WORK}

NOTIFY = "select pg_notify(%(channel)s, notice) from unnest(%(notices)s::text[]) as notice"


class Announcer:
    """Says what changed, for every writer of the process, at most once per gathering."""

    def __init__(self, connections: QueueConnections) -> None:
        self._connections = connections
        self._waiting: dict[tuple[TeamId, Topic], set[Id]] = {}
        self._speaking: asyncio.Task[None] | None = None
        self._at_once: dict[Topic, Callable[[TeamId, Id], None]] = {}

    def at_once(self, topic: Topic, hear: Callable[[TeamId, Id], None]) -> None:
        """Whoever is in the same process need not wait for the database to say it back."""
        self._at_once[topic] = hear

    def announce(self, team_id: TeamId, topic: Topic, row: Id) -> None:
        if (hear := self._at_once.get(topic)) is not None:
            hear(team_id, row)
        self._waiting.setdefault((team_id, topic), set()).add(row)
        if self._speaking is None or self._speaking.done():
            self._speaking = asyncio.create_task(self._speak())

    async def _speak(self) -> None:
        """Whoever has much to say says it less often; that there is work is never kept back for long."""
        pause = GATHER_SECONDS
        while self._waiting:
            await self._say_all()
            left = pause
            while left > 0 and not (left < pause and self._work_waits()):
                await asyncio.sleep(GATHER_SECONDS)
                left -= GATHER_SECONDS
            pause = min(pause * 2, GATHER_SECONDS_BUSY)

    def _work_waits(self) -> bool:
        return any(topic is Topic.WORK for _, topic in self._waiting)

    async def _say_all(self) -> None:
        gathered, self._waiting = self._waiting, {}
        notices = [
            json.dumps({"team": str(team), "topic": topic.value, "ids": _named(ids)})
            for (team, topic), ids in gathered.items()
        ]
        with suppress(ConsoleError):
            await self._connections.rows(NOTIFY, {"channel": CHANNEL, "notices": notices})

    async def close(self) -> None:
        """What was left with us is still said."""
        if self._speaking is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._speaking}, timeout=1.0)
            self._speaking.cancel()


def _named(ids: set[Id]) -> list[str] | None:
    """Many changes at once are told without names: the reader fetches its page again anyway."""
    return sorted(str(row) for row in ids) if len(ids) <= NAMED_AT_MOST else None


@dataclass(eq=False)
class _Reader:
    team_id: object
    topics: frozenset[Topic]
    waiting: "asyncio.Queue[Change]" = field(default_factory=lambda: asyncio.Queue(WAITING_AT_MOST))

    def give(self, change: Change) -> None:
        """A reader that can't keep up is told to fetch again instead of holding anyone up."""
        try:
            self.waiting.put_nowait(change)
        except asyncio.QueueFull:
            while not self.waiting.empty():
                self.waiting.get_nowait()
            self.waiting.put_nowait(REFETCH)


class Listener:
    """Hears notices on a connection of its own, for as long as somebody reads."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._readers: set[_Reader] = set()
        self._hearing: asyncio.Task[None] | None = None

    async def changes(
        self, team_id: object, topics: frozenset[Topic] = FOR_PEOPLE
    ) -> AsyncGenerator[Change, None]:
        reader = _Reader(team_id, topics)
        self._readers.add(reader)
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())
        else:
            reader.give(REFETCH)
        try:
            while True:
                yield await reader.waiting.get()
        finally:
            self._readers.discard(reader)
            if not self._readers and self._hearing is not None:
                self._hearing.cancel()
                self._hearing = None

    async def _hear(self) -> None:
        failures = 0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    make_conninfo("", **connection_settings(self._dsn)), autocommit=True
                ) as connection:
                    await connection.execute(f"listen {CHANNEL}")
                    failures = 0
                    self._give_all(REFETCH)
                    async for notice in connection.notifies():
                        self._pass_on(notice.payload)
            except (psycopg.Error, OSError):
                failures += 1
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])

    def _give_all(self, change: Change) -> None:
        for reader in self._readers:
            reader.give(change)

    def _pass_on(self, payload: str) -> None:
        try:
            notice = json.loads(payload)
            team_id = TeamId.parse(notice["team"])
            topic = Topic(notice["topic"])
            ids = notice["ids"] or (None,)
        except (ValueError, KeyError, TypeError, ConsoleError):
            self._give_all(REFETCH)
            return
        for reader in self._readers:
            if reader.team_id == team_id and topic in reader.topics:
                for row in ids:
                    reader.give(Change(topic=topic, id=row))

    async def close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            with suppress(asyncio.CancelledError):
                await self._hearing

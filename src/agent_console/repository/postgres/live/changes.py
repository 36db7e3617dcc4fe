"""Live changes over LISTEN and NOTIFY: one voice and one ear per process.

A notice in every inserting transaction would cost writers most of their speed (they queue for one lock), so
writers only leave a word with the announcer, which says it for all of them at most every 50 ms, and less often
while there is always something. Readers in the writer's own process are told at once. A notice that gets lost
costs a reader some freshness, never truth: readers look again by themselves.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, Id, TeamId, ThreadId
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.database import connection_settings
from agent_console.repository.postgres.live import standing
from agent_console.repository.postgres.live.audience import Audience
from agent_console.repository.postgres.live.notices import NAMED_AT_MOST, Notice, spoken, understood
from agent_console.repository.postgres.live.overlooked import behind
from agent_console.repository.postgres.live.shared_reads import SharedReads
from agent_console.repository.postgres.live.stream_reader import StreamReader
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.threads.readers import ThreadBook

CHANNEL = "agent_console_changes"
GATHER_SECONDS = 0.05
GATHER_SECONDS_BUSY = 0.1
# That there is work is never kept back for long. That jobs move is said all the time where there are many, and by
# every process that moves some: what shows them has no use for it more than four times a second.
KEPT_BACK = {Topic.WORK: GATHER_SECONDS, Topic.JOBS: 0.25}
RECONNECT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)

# Said before everything else, so that nobody hears of something by a right that is already gone.
FIRST = frozenset({Topic.USERS, Topic.TOKENS, Topic.THREADS})

NOTIFY = "select pg_notify(%(channel)s, notice) from unnest(%(notices)s::text[]) as notice"


class Announcer:
    """Says what changed, for every writer of the process, at most once per gathering."""

    def __init__(self, connections: QueueConnections) -> None:
        self.voice = uuid4().hex
        self._connections = connections
        self._waiting: dict[tuple[TeamId, Topic], dict[Id, Notice]] = {}
        self._speaking: asyncio.Task[None] | None = None
        self._at_once: dict[Topic, Callable[[TeamId, Id], None]] = {}
        self._here: Callable[[TeamId, Notice], None] | None = None

    def at_once(self, topic: Topic, hear: Callable[[TeamId, Id], None]) -> None:
        """Whoever is in the same process need not wait for the database to say it back."""
        self._at_once[topic] = hear

    def tell_here(self, hear: Callable[[TeamId, Notice], None]) -> None:
        """The ear of this process, which passes over what it hears of our own voice a second time."""
        self._here = hear

    def announce(
        self,
        team_id: TeamId,
        topic: Topic,
        row: Id,
        *,
        thread_id: ThreadId | None = None,
        agent_id: AgentId | None = None,
    ) -> None:
        self.tell(team_id, Notice.of(topic, row, thread_id=thread_id, agent_id=agent_id))

    def tell(self, team_id: TeamId, notice: Notice) -> None:
        """A notice with its own id."""
        if notice.id is None:
            return
        if (hear := self._at_once.get(notice.topic)) is not None:
            hear(team_id, notice.id)
        if self._here is not None:
            self._here(team_id, notice)
        waiting = self._waiting.setdefault((team_id, notice.topic), {})
        # So many are told without their names: who comes after them need not be known.
        if len(waiting) <= NAMED_AT_MOST:
            waiting[notice.id] = notice
        if self._speaking is None or self._speaking.done():
            self._speaking = asyncio.create_task(self._speak())

    async def _speak(self) -> None:
        """Whoever has much to say says it less and less often, as far as what waits can bear."""
        pause = GATHER_SECONDS
        while self._waiting:
            await self._say_all()
            waited = 0.0
            while waited < min(pause, self._patience()):
                await asyncio.sleep(GATHER_SECONDS)
                waited += GATHER_SECONDS
            pause = min(pause * 2, max(KEPT_BACK.values()))

    def _patience(self) -> float:
        return min(
            (KEPT_BACK.get(topic, GATHER_SECONDS_BUSY) for _, topic in self._waiting), default=GATHER_SECONDS_BUSY
        )

    async def _say_all(self) -> None:
        gathered, self._waiting = self._waiting, {}
        in_order = sorted(gathered.items(), key=lambda item: item[0][1] not in FIRST)
        notices = [spoken(self.voice, team_id, topic, waiting.values()) for (team_id, topic), waiting in in_order]
        with suppress(ConsoleError):
            await self._connections.rows(NOTIFY, {"channel": CHANNEL, "notices": notices})

    async def close(self) -> None:
        """What was left with us is still said."""
        if self._speaking is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._speaking}, timeout=1.0)
            self._speaking.cancel()


class Listener:
    """Hears notices on a connection of its own, for as long as somebody reads."""

    def __init__(self, dsn: str, connections: QueueConnections, own_voice: str) -> None:
        self._dsn = dsn
        self._connections = connections
        self._own_voice = own_voice
        self.book = ThreadBook(connections)
        self.shared_reads = SharedReads()
        self._audience = Audience(self.book)
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._listening = False

    async def changes(self, team_id: TeamId, topics: frozenset[Topic]) -> AsyncGenerator[Change, None]:
        """For parts of the house: everything of these topics, whoever may see it."""
        with self.reading(StreamReader(team_id, wants=lambda notice: notice.topic in topics)) as reader:
            while True:
                for change in await reader.next() or ():
                    yield change

    @contextmanager
    def reading(self, reader: StreamReader) -> Iterator[StreamReader]:
        """Within the block the reader is told what it wants; a REFETCH comes first."""
        self._audience.add(reader)
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._look_again())]
        if self._listening:
            reader.give(REFETCH)
        try:
            yield reader
        finally:
            self._audience.remove(reader)
            if not self._audience:
                self._stop()

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._tasks = []
        self._listening = False

    def hear_here(self, team_id: TeamId, notice: Notice) -> None:
        """What this process itself says. Work has a way of its own."""
        if notice.topic is not Topic.WORK:
            self._tell(team_id, notice)

    def _tell(self, team_id: TeamId, notice: Notice) -> None:
        if notice.id is None:
            self.shared_reads.touch_all()
        else:
            self.shared_reads.touch((team_id, notice.id))
        self._audience.tell(team_id, notice)

    def _all_fetch_again(self) -> None:
        self.shared_reads.touch_all()
        self._audience.all_fetch_again()

    async def _hear(self) -> None:
        failures = 0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    make_conninfo("", **connection_settings(self._dsn)), autocommit=True
                ) as connection:
                    await connection.execute(f"listen {CHANNEL}")
                    failures, self._listening = 0, True
                    self._all_fetch_again()
                    async for notice in connection.notifies():
                        self._pass_on(notice.payload)
            except (psycopg.Error, OSError):
                failures += 1
            finally:
                # One that was stopped may end after its successor has begun.
                if asyncio.current_task() in self._tasks:
                    self._listening = False
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])

    def _pass_on(self, payload: str) -> None:
        if (heard := understood(payload)) is None:
            self._all_fetch_again()
            return
        for notice in heard.notices:
            if heard.voice != self._own_voice or notice.topic is Topic.WORK:
                self._tell(heard.team_id, notice)

    async def _look_again(self) -> None:
        """Nothing can be told while the database is away, so a look that fails is tried again with the next."""
        while True:
            await asyncio.sleep(standing.LOOK_AGAIN_SECONDS)
            with suppress(ConsoleError):
                outsiders = self._audience.outsiders
                for reader in await standing.changed_standing(self._connections, outsiders):
                    reader.doubt()
                for reader in await behind(self._connections, (reader for reader, _ in outsiders)):
                    if reader.log.thing is not None:
                        self.shared_reads.touch((reader.team_id, reader.log.thing))
                    reader.give(REFETCH)

    async def close(self) -> None:
        """Whoever was stopped before has its connection to close too."""
        self._stop()
        if self._ending:
            await asyncio.wait(self._ending)
        await self._audience.close()

"""Those who read live changes in this process, and what of a notice each of them is told."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

from agent_console.domain.errors import ConsoleError
from agent_console.domain.identity import Caller
from agent_console.domain.ids import OperatorTokenId, TeamId
from agent_console.domain.permissions import Role
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.live.notices import Notice
from agent_console.repository.postgres.live.stream_reader import StreamReader
from agent_console.repository.postgres.threads.readers import Key, ThreadBook, ThreadReaders

# What belongs to a thread is told to who may read it.
OF_THREADS = frozenset({Topic.THREADS, Topic.MESSAGES, Topic.RUNS, Topic.APPROVALS})
# With these, who may read a thread may have changed: rights are given and taken, an agent begins to act or ends.
MOVING_RIGHTS = frozenset({Topic.THREADS, Topic.RUNS})
# What a person watches. That a job may be claimed concerns only those who wait for one.
FOR_PEOPLE = frozenset(Topic) - {Topic.WORK}
FOR_AGENTS = OF_THREADS | {Topic.WORK}


class Told(Enum):
    NOTHING = 0
    UNNAMED = 1
    NAMED = 2


def told_to(caller: Caller, notice: Notice, thread: ThreadReaders | None) -> Told:
    """Never the name of something that the caller may not see.

    `thread` is who may read the notice's thread; None when it has none, or when nobody could look it up.
    """
    if notice.topic not in (FOR_PEOPLE if caller.agent_id is None else FOR_AGENTS):
        return Told.NOTHING
    if notice.id is None or notice.topic is Topic.AUDIT:
        return Told.UNNAMED
    if notice.topic is Topic.TOKENS and caller.role is not Role.ADMIN:
        return Told.UNNAMED if isinstance(notice.id, OperatorTokenId) else Told.NOTHING
    if caller.agent_id is not None and (own := _own(caller, notice)) is not None:
        return own
    if notice.topic not in OF_THREADS:
        return Told.NAMED
    if thread is None:
        return Told.UNNAMED
    return Told.NAMED if thread.include(caller) else Told.NOTHING


def _own(caller: Caller, notice: Notice) -> Told | None:
    """An agent's own approvals, runs and work; None when its rights in the thread decide."""
    if notice.agent_id == caller.agent_id or (notice.topic is Topic.WORK and notice.id == caller.agent_id):
        return Told.NAMED
    if notice.topic is Topic.WORK:
        return Told.UNNAMED if isinstance(notice.id, TeamId) else Told.NOTHING
    return Told.NOTHING if notice.topic is Topic.APPROVALS else None


class Audience:
    """All readers of the process, by team."""

    def __init__(self, book: ThreadBook) -> None:
        self._book = book
        self._readers: dict[TeamId, set[StreamReader]] = defaultdict(set)
        self._finding_out: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._readers)

    @property
    def outsiders(self) -> list[tuple[StreamReader, Caller]]:
        return [
            (reader, reader.caller)
            for team in self._readers.values()
            for reader in team
            if reader.caller is not None
        ]

    def add(self, reader: StreamReader) -> None:
        self._readers[reader.team_id].add(reader)

    def remove(self, reader: StreamReader) -> None:
        team = self._readers[reader.team_id]
        team.discard(reader)
        if not team:
            del self._readers[reader.team_id]

    def all_fetch_again(self) -> None:
        for team in self._readers.values():
            for reader in team:
                reader.give(REFETCH)

    def tell(self, team_id: TeamId, notice: Notice) -> None:
        """At once, unless somebody has to find out first who may read the thread."""
        key = None if notice.thread_id is None else (team_id, notice.thread_id)
        if key is not None and notice.topic in MOVING_RIGHTS:
            self._book.forget(key)
        if not self._readers:
            return
        readers: list[StreamReader] = []
        for reader in self._readers.get(team_id, ()):
            if reader.stands_on(notice):
                reader.doubt()
            if reader.wants(notice):
                readers.append(reader)
        if not readers:
            return
        known = None if key is None else self._book.known(key)
        if key is None or known is not None:
            _tell_all(readers, notice, known)
            return
        _tell_all([reader for reader in readers if reader.reads_itself], notice, None)
        if outside := [reader for reader in readers if not reader.reads_itself]:
            asking = asyncio.create_task(self._find_out(key, notice, outside))
            self._finding_out.add(asking)
            asking.add_done_callback(self._finding_out.discard)

    async def _find_out(self, key: Key, notice: Notice, readers: list[StreamReader]) -> None:
        known: ThreadReaders | None
        try:
            known = await self._book.readers(key)
        except ConsoleError:
            known = None
        _tell_all(readers, notice, known)

    async def close(self) -> None:
        for asking in tuple(self._finding_out):
            asking.cancel()
        await self._book.close()


def _tell_all(readers: Iterable[StreamReader], notice: Notice, thread: ThreadReaders | None) -> None:
    unnamed = Change(topic=notice.topic)
    named = unnamed if notice.id is None else Change(topic=notice.topic, id=str(notice.id))
    for reader in readers:
        if reader.caller is None or reader.reads_itself:
            reader.give(named)
            continue
        match told_to(reader.caller, notice, thread):
            case Told.NAMED:
                reader.give(named)
            case Told.UNNAMED:
                reader.give(unnamed)
            case Told.NOTHING:
                pass

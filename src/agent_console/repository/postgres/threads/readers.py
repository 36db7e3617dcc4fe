"""Who may read a thread, for live streams: looked up once for all readers, and again after a few seconds.

It is the rule of `access.may_read` turned around: there the caller is known, and threads are looked for.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from agent_console.domain.identity import Caller
from agent_console.domain.ids import AgentId, TeamId, ThreadId, UserId
from agent_console.domain.permissions import Role
from agent_console.repository.postgres.queue.connections import QueueConnections

KNOWN_SECONDS = 4.0
REMEMBERED = 5_000

# By thread_participants_thread_idx and runs_open_idx.
WHO_READS = """
    select t.visibility = 'shared' as shared,
           array(select p.user_id from thread_participants p
                  where p.team_id = t.team_id and p.thread_id = t.id and p.can_read
                    and p.participant_type = 'human') as people,
           array(select p.agent_id from thread_participants p
                  where p.team_id = t.team_id and p.thread_id = t.id and p.can_read
                    and p.participant_type = 'agent') as agents,
           array(select r.target_agent_id from runs r
                  where r.team_id = t.team_id and r.thread_id = t.id and r.ended_at is null
                    and r.status in ('queued', 'running')) as acting
      from threads t
     where t.team_id = %(team_id)s and t.id = %(thread_id)s
"""


@dataclass(frozen=True)
class ThreadReaders:
    shared: bool = False
    people: frozenset[UserId] = frozenset()
    agents: frozenset[AgentId] = frozenset()

    def include(self, caller: Caller) -> bool:
        if caller.role is Role.ADMIN:
            return True
        if caller.agent_id is not None:
            return caller.agent_id in self.agents
        return self.shared or caller.user_id in self.people


Key = tuple[TeamId, ThreadId]


class ThreadBook:
    """What one process knows of who reads which thread."""

    def __init__(self, connections: QueueConnections) -> None:
        self._connections = connections
        self._known: OrderedDict[Key, tuple[float, ThreadReaders]] = OrderedDict()
        self._asking: dict[Key, asyncio.Task[None]] = {}

    def known(self, key: Key) -> ThreadReaders | None:
        found = self._known.get(key)
        if found is None or found[0] <= asyncio.get_running_loop().time() - KNOWN_SECONDS:
            return None
        return found[1]

    def forget(self, key: Key) -> None:
        """Somebody's rights changed; what is being looked up may be from before that."""
        self._known.pop(key, None)
        self._asking.pop(key, None)

    async def readers(self, key: Key) -> ThreadReaders:
        """One look-up, however many ask for it at once; another when rights changed meanwhile."""
        while (known := self.known(key)) is None:
            if (asking := self._asking.get(key)) is None:
                asking = self._asking[key] = asyncio.create_task(self._look_up(key))
                asking.add_done_callback(self._looked_up)
            await asyncio.shield(asking)
        return known

    async def _look_up(self, key: Key) -> None:
        try:
            found = await self._ask(key)
            if self._asking.get(key) is asyncio.current_task():
                self._remember(key, found)
        finally:
            if self._asking.get(key) is asyncio.current_task():
                del self._asking[key]

    def _looked_up(self, asking: "asyncio.Task[None]") -> None:
        """Whoever waited for it may be gone; a failure is theirs alone."""
        if not asking.cancelled():
            asking.exception()

    def _remember(self, key: Key, found: ThreadReaders) -> None:
        self._known[key] = (asyncio.get_running_loop().time(), found)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def _ask(self, key: Key) -> ThreadReaders:
        team_id, thread_id = key
        rows = await self._connections.rows(WHO_READS, {"team_id": team_id, "thread_id": thread_id})
        if not rows:
            return ThreadReaders()
        (row,) = rows
        return ThreadReaders(
            shared=row.shared,
            people=frozenset(UserId.of(person) for person in row.people),
            agents=frozenset(AgentId.of(agent) for agent in (*row.agents, *row.acting)),
        )

    async def close(self) -> None:
        for asking in tuple(self._asking.values()):
            asking.cancel()

"""Agents that wait for a job: woken at once when one may be claimed here or in another process.

A notice can get lost, and time alone makes jobs claimable: so one look every two seconds is taken for all who wait
in this process, and only those are woken for whom it found something. What no such look sees, a capability that
came back for instance, each finds out for itself, more seldom.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, LaneId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.live.changes import Listener
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.lane_book import LaneBook, Routing

# Whoever is woken asks together with the others; a crowd is woken a part at a time.
WOKEN_AT_ONCE = 64
LOOK_AGAIN_SECONDS = 2.0
ALONE_EVERY = 5
"""After so many looks together each one looks for itself."""

# The lanes of one agent alone are in no book. One probe of lanes_bound_idx for each who waits, and one of
# jobs_claim_order_idx for each lane.
BOUND = """
    select distinct l.bound_agent_id as agent_id
      from lanes l
     where l.team_id = %(team_id)s and l.bound_agent_id = any(%(agents)s::uuid[])
       and exists (select from jobs j where j.team_id = l.team_id and j.lane_id = l.id and j.look_at = '-infinity')
"""


@dataclass(eq=False)
class Woken:
    """One agent that waits."""

    agent_id: AgentId
    routing: Routing
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> None:
        """Until something may have come, or it is time to look without being told.

        Before Python 3.12 `asyncio.wait_for` forgets that whoever is being told goes away at the same moment: a
        job was claimed for nobody, and held until its lease was over.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, LOOK_AGAIN_SECONDS * ALONE_EVERY)):
                await self.told.wait()


class WaitingAgents:
    """`tend` lets time do its work on the jobs of all teams, and has those called whom that concerns."""

    def __init__(
        self,
        listener: Listener,
        book: LaneBook,
        connections: QueueConnections,
        tend: Callable[[], Awaitable[int]],
    ) -> None:
        self._listener = listener
        self._book = book
        self._connections = connections
        self._tend = tend
        self._waiting: dict[TeamId, list[Woken]] = defaultdict(list)
        self._hearing: dict[TeamId, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None
        self.over = False
        """Nobody waits any longer: the process stops."""

    def let_go(self) -> None:
        """Everybody looks once more, and has then waited long enough."""
        self.over = True
        for waiting in self._waiting.values():
            for woken in waiting:
                woken.told.set()

    @contextmanager
    def expecting(self, agent_id: AgentId, routing: Routing) -> Iterator[Woken]:
        """From here on, until the block ends, the agent is woken when something may have come for it."""
        team_id = routing.team_id
        waiting = self._waiting[team_id]
        woken = Woken(agent_id, routing)
        waiting.append(woken)
        if team_id not in self._hearing or self._hearing[team_id].done():
            self._hearing[team_id] = asyncio.create_task(self._hear(team_id))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_again())
        try:
            yield woken
        finally:
            waiting.remove(woken)
            if not waiting:
                self._waiting.pop(team_id, None)
                if (hearing := self._hearing.pop(team_id, None)) is not None:
                    hearing.cancel()

    def came(self, team_id: TeamId, place: LaneId | AgentId | None) -> None:
        """A job may be claimed in this lane, or by this agent alone; without either, by anybody."""
        match place:
            case AgentId():
                self._wake(team_id, lambda woken: woken.agent_id == place)
            case LaneId() if self._book.came(team_id, place):
                page = self._book.page(team_id)
                self._wake(team_id, lambda woken: place in page.lanes_for(woken.routing))
            case _:
                self._book.forget(team_id)
                self._wake(team_id, lambda _: True)

    def pass_on(self, served: Woken) -> None:
        """Where one got a job there may be more: the next of its kind looks, and so on until one finds none."""
        self._wake(
            served.routing.team_id, lambda woken: woken is not served and woken.routing == served.routing, left=1
        )

    def _wake(self, team_id: TeamId, concerns: Callable[[Woken], bool], left: int = WOKEN_AT_ONCE) -> None:
        """Who has waited longest first."""
        for woken in self._waiting.get(team_id, ()):
            if left and not woken.told.is_set() and concerns(woken):
                woken.told.set()
                left -= 1

    async def _hear(self, team_id: TeamId) -> None:
        with suppress(ConsoleError):
            async for change in self._listener.changes(team_id, frozenset({Topic.WORK})):
                match (change.id or "").partition("_")[0]:
                    case LaneId.prefix:
                        self.came(team_id, LaneId.parse(change.id or ""))
                    case AgentId.prefix:
                        self.came(team_id, AgentId.parse(change.id or ""))
                    case _:
                        self.came(team_id, None)

    async def _look_again(self) -> None:
        """For as long as anybody waits. While the database is away there is nothing to find."""
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        while self._waiting:
            with suppress(ConsoleError):
                await self._tend()
                for team_id in tuple(self._waiting):
                    await self._look_for(team_id)
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _look_for(self, team_id: TeamId) -> None:
        await self._book.look(team_id)
        page = self._book.page(team_id)
        waiting = [f"{woken.agent_id.int:032x}" for woken in self._waiting.get(team_id, ())]
        rows = await self._connections.rows(BOUND, {"team_id": team_id, "agents": waiting})
        bound = {AgentId.of(row.agent_id) for row in rows}
        self._wake(team_id, lambda woken: woken.agent_id in bound or bool(page.floors_for(woken.routing)))

    async def close(self) -> None:
        ending = (*self._hearing.values(), *(() if self._looking is None else (self._looking,)))
        for task in ending:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

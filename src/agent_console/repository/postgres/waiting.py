"""Agents that wait for a job: woken at once when one may be claimed here or in another process."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, LaneId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.changes import Listener
from agent_console.repository.postgres.lane_book import LaneBook, Routing

# Whoever is woken asks together with the others; a crowd is woken a part at a time.
WOKEN_AT_ONCE = 64
# Polling finds what no notice told of: a notice can get lost, and time alone makes jobs claimable.
LOOK_AGAIN_SECONDS = 2.0


@dataclass(eq=False)
class Woken:
    """One agent that waits."""

    agent_id: AgentId
    routing: Routing
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> None:
        """Until something may have come, or it is time to look without being told."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.told.wait(), min(seconds, LOOK_AGAIN_SECONDS))


class WaitingAgents:
    def __init__(self, listener: Listener, book: LaneBook) -> None:
        self._listener = listener
        self._book = book
        self._waiting: dict[TeamId, list[Woken]] = defaultdict(list)
        self._hearing: dict[TeamId, asyncio.Task[None]] = {}

    @contextmanager
    def expecting(self, agent_id: AgentId, routing: Routing) -> Iterator[Woken]:
        """From here on, until the block ends, the agent is woken when something may have come for it."""
        team_id = routing.team_id
        waiting = self._waiting[team_id]
        woken = Woken(agent_id, routing)
        waiting.append(woken)
        if team_id not in self._hearing or self._hearing[team_id].done():
            self._hearing[team_id] = asyncio.create_task(self._hear(team_id))
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

    def _wake(self, team_id: TeamId, concerns: Callable[[Woken], bool]) -> None:
        """Who has waited longest first."""
        left = WOKEN_AT_ONCE
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

    async def close(self) -> None:
        for hearing in tuple(self._hearing.values()):
            hearing.cancel()
            with suppress(asyncio.CancelledError):
                await hearing

"""The queue as one process sees it: what its agents share."""

from agent_console.domain.ids import AgentId, Id, JobId, LaneId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.acting import KnownAgents
from agent_console.repository.postgres.live.changes import Announcer, Listener
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.creating import Creating
from agent_console.repository.postgres.queue.held_jobs import HeldJobs
from agent_console.repository.postgres.queue.lane_book import LaneBook
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.turns import Turns
from agent_console.repository.postgres.queue.waiting import WaitingAgents

# A claim that finds nothing does a small step of what the duty does, so that nothing depends on somebody's alarm.
STEP = 100

TEND = "select * from tend_jobs(%(at_most)s)"


class Queue:
    def __init__(self, connections: QueueConnections, announcer: Announcer, listener: Listener) -> None:
        self._announcer = announcer
        self.connections = connections
        self.book = LaneBook(self.connections)
        self.waiting = WaitingAgents(listener, self.book, self.connections, self.tend)
        self.turns = Turns(self.connections, self.book, announcer)
        self.held = HeldJobs(self.connections, announcer)
        self.known = KnownAgents(self.connections)
        self.creating = Creating()
        self.counts_after, self.counts_folded = 0, 0
        announcer.at_once(Topic.WORK, self._came)

    def _came(self, team_id: TeamId, place: Id) -> None:
        self.waiting.came(team_id, place if isinstance(place, (LaneId, AgentId)) else None)

    async def tend(self, at_most: int = STEP) -> int:
        """Let time do its work: what is due may be claimed, what was lost goes back. How many were touched."""
        rows = await self.connections.rows(TEND, {"at_most": at_most})
        for row in rows:
            team_id = TeamId.of(row.team_id)
            self._announcer.announce(team_id, Topic.JOBS, JobId.of(row.job_id))
            if row.status == "ready":
                self._announcer.announce(team_id, Topic.WORK, place_of(row.lane_id, row.bound_agent_id))
        return len(rows)

    async def close(self) -> None:
        await self.waiting.close()
        await self.turns.close()
        await self.held.close()
        await self.creating.close()

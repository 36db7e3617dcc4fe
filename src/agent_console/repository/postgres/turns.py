"""Agents' turns: what each finishes and what it gets next, many in one statement, each with its own answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from agent_console.domain.ids import AgentId, JobId, LaneId, TeamId
from agent_console.domain.working import JobDone
from agent_console.repository.port import Topic
from agent_console.repository.postgres.changes import Announcer
from agent_console.repository.postgres.gathering import Gatherer
from agent_console.repository.postgres.lane_book import LaneBook, Routing
from agent_console.repository.postgres.queue_connections import QueueConnections

# While the database works on one batch, this process is idle: with so many waiting it prepares another.
CROWD = 7
AT_ONCE = 4

TAKE_TURNS = """
    select * from take_turns(%(team_id)s, %(turns)s, %(lanes)s, %(priorities)s, %(ids)s, %(types)s,
                             %(repositories)s)
"""


@dataclass(frozen=True)
class Finish:
    """The end of one attempt. One that is apart is finished by a caller who sees to what follows from it."""

    job_id: JobId
    attempt: int
    outcome: str
    summary: str | None = None
    error_code: str | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    signature: str | None = None
    artifacts_path: str | None = None
    apart: bool = False

    @classmethod
    def of_done(cls, done: JobDone, *, apart: bool = False) -> Self:
        return cls(
            done.job_id,
            done.attempt,
            "succeeded",
            summary=done.result_summary,
            result=done.result,
            signature=done.signature,
            artifacts_path=done.artifacts_path,
            apart=apart,
        )

    def facts(self) -> dict[str, object]:
        return vars(self) | {"job_id": UUID(int=self.job_id.int).hex}


@dataclass(frozen=True)
class Turn:
    """`key_hash` is a key still to be proved; `routing` is the mark of what the agent was last known to do."""

    agent_id: AgentId
    key_hash: str | None = None
    finish: Finish | None = None
    wants: int = 0
    lease: int = 0
    starts: bool = False
    routing: str | None = None

    def facts(self, place: int) -> dict[str, object]:
        said = {
            "n": place,
            "agent_id": UUID(int=self.agent_id.int).hex,
            "key_hash": self.key_hash,
            "wants": self.wants,
            "lease": self.lease,
            "starts": self.starts,
            "routing": self.routing,
        }
        return said if self.finish is None else said | self.finish.facts()


@dataclass
class Taken:
    """How a turn went. `jobs` are rows of take_turns."""

    standing: str
    finish: str | None
    finish_status: str | None
    pause: dict[str, Any] | None
    jobs: list[Any] = field(default_factory=list)


class Turns:
    """What all agents of one process share: their turns go into the next statement together."""

    def __init__(self, connections: QueueConnections, book: LaneBook, announcer: Announcer) -> None:
        self._connections = connections
        self._book = book
        self._announcer = announcer
        self._gatherer = Gatherer[Routing, Turn, Taken](self._take, at_once=AT_ONCE, crowd=CROWD)

    async def take(self, routing: Routing, turn: Turn) -> Taken:
        return await self._gatherer.add(routing, turn.agent_id, turn)

    async def _take(self, routing: Routing, turns: Sequence[Turn]) -> list[Taken]:
        wanted = any(turn.wants for turn in turns)
        floors = await self._book.waiting_lanes(routing) if wanted else {}
        rows = await self._connections.rows(TAKE_TURNS, facts_of(routing, turns, floors))
        taken = taken_of(rows, len(turns))
        for turn, answer in zip(turns, taken, strict=True):
            self._tell(routing.team_id, turn, answer)
        return taken

    def _tell(self, team_id: TeamId, turn: Turn, taken: Taken) -> None:
        if turn.finish is not None and taken.finish == "ok":
            self._announcer.announce(team_id, Topic.JOBS, turn.finish.job_id)
        for job in taken.jobs:
            self._book.claimed(team_id, LaneId.of(job.lane_id), job.priority, job.job_id)
            self._announcer.announce(team_id, Topic.JOBS, JobId.of(job.job_id))

    async def close(self) -> None:
        await self._gatherer.close()


def facts_of(routing: Routing, turns: Sequence[Turn], floors: dict[LaneId, tuple[int, UUID]]) -> dict[str, object]:
    return {
        "team_id": routing.team_id,
        "turns": json.dumps([turn.facts(place) for place, turn in enumerate(turns, 1)]),
        "lanes": list(floors),
        "priorities": [priority for priority, _ in floors.values()],
        "ids": [place for _, place in floors.values()],
        "types": None if routing.types is None else sorted(routing.types),
        "repositories": None if routing.repositories is None else sorted(routing.repositories),
    }


def taken_of(rows: Sequence[Any], count: int) -> list[Taken]:
    """The first `count` rows tell how each turn stands; every row after them is a job somebody got."""
    taken = [Taken(row.standing, row.finish, row.finish_status, row.pause) for row in rows[:count]]
    for row in rows[count:]:
        taken[row.turn - 1].jobs.append(row)
    return taken

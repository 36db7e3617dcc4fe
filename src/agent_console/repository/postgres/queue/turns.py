"""Agents' turns: what each finishes and what it gets next, many in one statement, each with its own answer."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from agent_console.domain.ids import AgentId, Id, JobId, LaneId, TeamId
from agent_console.domain.redact import redact_object
from agent_console.domain.working import JobDone
from agent_console.repository.port import Topic
from agent_console.repository.postgres.live.changes import Announcer
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.gathering import Gatherer
from agent_console.repository.postgres.queue.lane_book import LaneBook, Routing

# While the database works on one batch, this process answers another. More than two wait for each other's commits.
CROWD = 12
AT_ONCE = 2

# Where the waiting jobs of each lane begin.
Floors = dict[LaneId, tuple[int, UUID]]

TAKE_TURNS = """
    select * from take_turns(%(team_id)s, %(turns)s, %(lanes)s::uuid[], %(priorities)s::integer[],
                             %(ids)s::uuid[], %(types)s, %(repositories)s)
"""
TAKE_TURN = """
    select * from take_turn(%(team_id)s, %(agent_id)s::uuid, %(key_hash)s, %(routing)s, %(job_id)s::uuid,
                            %(attempt)s, %(summary)s, %(wants)s, %(lease)s, %(starts)s,
                            %(lanes)s::uuid[], %(priorities)s::integer[], %(ids)s::uuid[])
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
    def of_done(cls, done: JobDone, *, apart: bool = False, signed: bool = False) -> Self:
        """A result is kept without the secrets in it; one whose signature was proved stays what was signed."""
        return cls(
            done.job_id,
            done.attempt,
            "succeeded",
            summary=done.result_summary,
            result=done.result if signed or done.result is None else redact_object(done.result),
            signature=done.signature,
            artifacts_path=done.artifacts_path,
            apart=apart,
        )

    @property
    def plain(self) -> bool:
        """A success of which nothing but a word is kept."""
        return (
            self.outcome == "succeeded" and self.result is None and self.artifacts_path is None and not self.apart
        )

    def facts(self) -> dict[str, object]:
        return vars(self) | {"job_id": _hex(self.job_id)}


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

    @property
    def plain(self) -> bool:
        return self.wants <= 1 and (self.finish is None or self.finish.plain)

    def facts(self, place: int) -> dict[str, object]:
        said = {
            "n": place,
            "agent_id": _hex(self.agent_id),
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
        self._gatherer = Gatherer[Routing, Turn, Taken](
            self._take, at_once=AT_ONCE, crowd=CROWD, busy=_ends_something
        )

    async def take(self, routing: Routing, turn: Turn) -> Taken:
        return await self._gatherer.add(routing, turn.agent_id, turn)

    async def _take(self, routing: Routing, turns: Sequence[Turn]) -> list[Taken]:
        wanted = any(turn.wants for turn in turns)
        floors = await self._book.waiting_lanes(routing) if wanted else {}
        if len(turns) == 1 and turns[0].plain:
            taken = [await self._take_one(routing, turns[0], floors)]
        else:
            taken = await self._take_all(routing, turns, floors)
        self._tell(routing.team_id, turns, taken)
        return taken

    async def _take_all(self, routing: Routing, turns: Sequence[Turn], floors: Floors) -> list[Taken]:
        rows = await self._connections.rows(TAKE_TURNS, facts_of(routing, turns, floors))
        return taken_of(rows, len(turns))

    async def _take_one(self, routing: Routing, turn: Turn, floors: Floors) -> Taken:
        """The short way, which ends in a job or in nothing done; then the long way says how it really is."""
        (row,) = await self._connections.rows(TAKE_TURN, facts_of_one(routing.team_id, turn, floors))
        if not row.done:
            return (await self._take_all(routing, [turn], floors))[0]
        finish, status = (None, None) if turn.finish is None else ("ok", "succeeded")
        if row.job_id is not None or not turn.wants:
            return Taken("open" if turn.wants else "done", finish, status, None, [row] if row.job_id else [])
        (taken,) = await self._take_all(routing, [replace(turn, finish=None)], floors)
        taken.finish, taken.finish_status = finish, status
        return taken

    def _tell(self, team_id: TeamId, turns: Sequence[Turn], taken: Sequence[Taken]) -> None:
        """Of each lane only the last job it gave is worth remembering: they come in the order of the lane."""
        moved: list[JobId] = []
        reached: dict[UUID, tuple[int, UUID]] = {}
        for turn, answer in zip(turns, taken, strict=True):
            if turn.finish is not None and answer.finish == "ok":
                moved.append(turn.finish.job_id)
            for job in answer.jobs:
                moved.append(JobId.of(job.job_id))
                place = (-job.priority, job.job_id)
                reached[job.lane_id] = max(reached.get(job.lane_id, place), place)
        for lane_id, place in reached.items():
            self._book.claimed(team_id, LaneId.of(lane_id), place)
        for job_id in moved:
            self._announcer.announce(team_id, Topic.JOBS, job_id)

    async def close(self) -> None:
        await self._gatherer.close()


def _ends_something(turn: Turn) -> bool:
    """Whoever only asks for work is served in turn, since there may not be enough for all."""
    return turn.finish is not None


def begins_of(floors: Floors) -> dict[str, object]:
    """Arrays as PostgreSQL writes them: made from Python's lists they cost a claim more than sending them."""
    return {
        "lanes": _array(_hex(lane) for lane in floors),
        "priorities": _array(str(priority) for priority, _ in floors.values()),
        "ids": _array(place.hex for _, place in floors.values()),
    }


def _array(words: Iterable[str]) -> str:
    return f"{{{','.join(words)}}}"


def _hex(row: Id) -> str:
    return f"{row.int:032x}"


def facts_of_one(team_id: TeamId, turn: Turn, floors: Floors) -> dict[str, object]:
    finish = turn.finish
    return begins_of(floors) | {
        "team_id": team_id,
        "agent_id": _hex(turn.agent_id),
        "key_hash": turn.key_hash,
        "routing": turn.routing,
        "job_id": None if finish is None else _hex(finish.job_id),
        "attempt": None if finish is None else finish.attempt,
        "summary": None if finish is None else finish.summary,
        "wants": turn.wants > 0,
        "lease": turn.lease,
        "starts": turn.starts,
    }


def facts_of(routing: Routing, turns: Sequence[Turn], floors: Floors) -> dict[str, object]:
    return begins_of(floors) | {
        "team_id": routing.team_id,
        "turns": json.dumps([turn.facts(place) for place, turn in enumerate(turns, 1)]),
        "types": None if routing.types is None else sorted(routing.types),
        "repositories": None if routing.repositories is None else sorted(routing.repositories),
    }


def taken_of(rows: Sequence[Any], count: int) -> list[Taken]:
    """One row for every job that somebody got, and one for each of the turns that got none."""
    taken: dict[int, Taken] = {}
    for row in rows:
        if (turn := taken.get(row.turn)) is None:
            turn = taken[row.turn] = Taken(row.standing, row.finish, row.finish_status, row.pause)
        if row.job_id is not None:
            turn.jobs.append(row)
    return [taken[place] for place in range(1, count + 1)]

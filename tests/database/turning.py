"""Agents' turns as the database does them, without the program around it: one the short way, or many together."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from agent_console.domain.ids import Id
from tests.database import rows
from tests.database.team import Row, Team

Execute = Callable[..., list[Row]]

ONE = "select * from take_turn(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::uuid[], %s::integer[], %s::uuid[])"
MANY = "select * from take_turns(%s, %s, %s::uuid[], %s::integer[], %s::uuid[], %s, %s)"
# How a job that was given, or that nobody gave, stands in all tables of the queue.
EVERYTHING = """
    select (select json_agg(j order by j.id)::text from jobs j) as jobs,
           (select json_agg(e order by e.seq)::text from job_events e) as events,
           (select json_agg(m order by m.id)::text from queue_moves m) as moves
"""
LOWEST = (-1000, UUID(int=0))


def add_worker(team: Team, **facts: object) -> Row:
    """An agent that has been heard of."""
    capabilities = facts.pop("capabilities", [])
    agent = rows.add_agent(team, **facts)
    rows.add_agent_runtime(team, agent_id=agent["id"], capabilities=capabilities)
    return agent


def held_by(agent: Row, **facts: object) -> Row:
    """What a job needs that this agent works on since a moment ago."""
    held: Row = {"status": "running", "agent_id": agent["id"], "claimed_by": agent["worker_id"]}
    return held | {"assigned_at": now, "started_at": now, "lease_expires_at": rows.LATER} | facts


def now(team: Team) -> datetime:
    (clock,) = team.execute("select now() as at")
    assert isinstance(clock["at"], datetime)
    return clock["at"]


def short_turn(
    execute: Execute,
    agent: Row,
    lanes: Sequence[object] = (),
    floors: Sequence[tuple[int, object]] = (),
    finishes: Row | None = None,
    **said: object,
) -> Row:
    """Without more said it proves no key, wants a job, and starts it."""
    begins = [*floors, *[LOWEST] * (len(lanes) - len(floors))]
    (found,) = execute(
        ONE,
        *(agent["team_id"], agent["id"], said.get("key_hash"), said.get("routing")),
        *((finishes["id"], finishes.get("attempt", 1)) if finishes else (None, None)),
        *(said.get("summary"), said.get("wants", True), said.get("lease", 60), said.get("starts", True)),
        *(list(lanes), [priority for priority, _ in begins], [place for _, place in begins]),
    )
    return found


def turn(agent: Row, finishes: Row | None = None, **said: object) -> Row:
    """One of many; without more said it wants a job and starts it."""
    wanted: Row = {"agent_id": text(agent["id"]), "wants": 1, "lease": 60, "starts": True}
    if finishes is not None:
        wanted |= {"job_id": text(finishes["id"]), "attempt": finishes.get("attempt", 1), "outcome": "succeeded"}
    return wanted | said


def turns_together(
    execute: Execute,
    team_id: object,
    turns: Sequence[Row],
    lanes: Sequence[object] = (),
    floors: Sequence[tuple[int, object]] = (),
    types: list[str] | None = None,
    repositories: list[str] | None = None,
) -> list[Row]:
    begins = [*floors, *[LOWEST] * (len(lanes) - len(floors))]
    numbered = json.dumps([{"n": place} | one for place, one in enumerate(turns, 1)])
    starts = list(lanes), [priority for priority, _ in begins], [place for _, place in begins]
    return execute(MANY, team_id, numbered, *starts, types, repositories)


def text(made: object) -> str:
    assert isinstance(made, Id)
    return UUID(int=made.int).hex


def everything(team: Team) -> list[Row]:
    return team.execute(EVERYTHING)


def story(team: Team, job: Row) -> list[tuple[object, object]]:
    told = team.execute("select level, message from job_events where job_id = %s order by seq", job["id"])
    return [(line["level"], line["message"]) for line in told]

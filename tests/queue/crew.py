"""The fleet at work: its agents and its operator as callers, an empty queue, and a clock that tests can move."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg
from psycopg.rows import DictRow, dict_row

from agent_console.domain.ids import AgentId, JobId
from agent_console.domain.jobs import Job, NewJob
from agent_console.domain.secrets import Secret
from agent_console.domain.working import Assignment, Claim, Claimed
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.working import CLAIMS_TAKE
from agent_console.repository.port import Repository
from tests.database.endless_times import EndlessTimes
from tests.support.fleet import Fleet

Row = dict[str, object]

# Counting triggers do not hear of this, so the counts are emptied with what they count.
EMPTY = "truncate jobs, lanes, queue_moves, queue_counts, queue_tallies cascade"

# Everything that looks at the clock, as if it had been written that much earlier.
TIME_PASSES = """
    update jobs
       set lease_expires_at = lease_expires_at - d.passed,
           look_at = case when look_at = '-infinity' then look_at else look_at - d.passed end,
           next_attempt_at = next_attempt_at - d.passed,
           scheduled_for = scheduled_for - d.passed,
           assigned_at = assigned_at - d.passed,
           started_at = started_at - d.passed
      from (select make_interval(secs => %s) as passed) as d
     where finished_at is null
"""


def time_passes(fleet: Fleet, seconds: float) -> None:
    fleet.execute(TIME_PASSES, seconds)


def key_of(fleet: Fleet, name: str) -> Secret:
    key = Secret.mint(fleet.team_id(), fleet.agent_id(name))
    fleet.execute("update agents set api_key_hash = %s where name = %s", key.hash, name)
    return key


@dataclass(frozen=True)
class Crew:
    """Every caller speaks through the same kind of repository."""

    fleet: Fleet
    operator: Repository
    with_secret: Callable[[Secret], Awaitable[Repository]]

    async def agent(self, name: str) -> Repository:
        return await self.with_secret(key_of(self.fleet, name))

    def id_of(self, name: str) -> AgentId:
        return self.fleet.agent_id(name)

    async def enqueue(self, type: str = "work", **facts: object) -> Job:
        new = NewJob.model_validate({"type": type, "payload": {}} | facts)
        return await self.operator.call(JOBS_CREATE, new)

    def rows(self, statement: str, *values: object) -> list[Row]:
        with psycopg.connect(self.fleet.administration, row_factory=dict_row, autocommit=True) as connection:
            connection.adapters.register_loader("timestamptz", EndlessTimes)
            found: list[DictRow] = connection.execute(statement.encode(), values).fetchall()
            return found

    def row(self, job_id: JobId) -> Row:
        """The whole row as it is stored."""
        (found,) = self.rows("select * from jobs where id = %s", job_id)
        return found

    def status(self, job_id: JobId) -> object:
        return self.row(job_id)["status"]

    def events(self, job_id: JobId) -> list[Row]:
        return self.rows("select * from job_events where job_id = %s order by seq", job_id)

    def story(self, job_id: JobId) -> list[tuple[object, object]]:
        """Every change of state, from what to what."""
        told = [event["payload"] for event in self.events(job_id)]
        return [(facts.get("from"), facts["to"]) for facts in told if isinstance(facts, dict) and "to" in facts]

    def time_passes(self, seconds: float) -> None:
        time_passes(self.fleet, seconds)


async def until(true: Callable[[], bool]) -> None:
    """Let others work until something is so; a minute is a failure."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def claim(agent: Repository, **facts: object) -> Claimed:
    return await agent.call(CLAIMS_TAKE, Claim.model_validate(facts))


async def take(agent: Repository, **facts: object) -> Assignment:
    """A claim that must bring a job."""
    claimed = await claim(agent, **facts)
    assert claimed.job is not None, claimed.reason
    return claimed.job


async def take_running(agent: Repository, **facts: object) -> Assignment:
    return await take(agent, auto_start=True, **facts)

"""A job that an agent holds without its knowing goes back long before its lease is over, and to nobody twice."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from agent_console.agent import Agent, JobContext
from agent_console.agent.line import Line
from agent_console.agent.unknown import LEFT, UnknownJobs
from agent_console.domain.working import Assignment, Claim
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.operations.working import CLAIMS_HELD, CLAIMS_TAKE
from tests.agent.cut_answer import cut_answer
from tests.agent.stage import FAST, Stage, until
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

# Longer than the test: whoever waits for the lease is not back in time.
LEASE = 3_600
SOON_SURE = replace(FAST, silent_seconds=0.3, unsure_seconds=60.0)
TOLD = "select count(*) from job_events where job_id = %s and message like %s"
RETRY_NOW = "update jobs set next_attempt_at = now(), look_at = now() where id = %s and next_attempt_at > now()"


async def test_a_server_that_is_killed_after_it_gave_a_job_and_before_it_said_so(
    stage: Stage, tmp_path: Path
) -> None:
    begun: list[tuple[object, int]] = []
    job_id = await stage.enqueue()

    async def work(job: JobContext) -> None:
        begun.append((job.id, job.attempt))

    async with cut_answer(stage.fleet, tmp_path) as wire:
        agent = Agent(wire.url, stage.key(), lease_seconds=LEASE, pace=SOON_SURE)
        agent.handle()(work)
        running = asyncio.create_task(agent.run(signals=False))
        await asyncio.wait_for(wire.cut.wait(), 60)
        held_unheard = stage.status(job_id), stage.column(job_id, "attempt"), list(begun)
        wire.start_server()
        await until(lambda: stage.column(job_id, "attempt") == 2)
        stage.fleet.execute(RETRY_NOW, job_id)
        await until(lambda: stage.status(job_id) == "succeeded")
        agent.leave(at_once=True)
        await running

    assert held_unheard == ("running", 1, [])
    assert begun == [(job_id, 2)]
    assert stage.fleet.one(TOLD, job_id, f"%{LEFT}%") == 1


async def test_what_a_killed_agent_held_goes_back_when_it_is_started_again(stage: Stage) -> None:
    job_id, key = await stage.enqueue(), stage.key()
    await taken(stage, key)

    agent = Agent(stage.url, key, lease_seconds=LEASE, pace=SOON_SURE)
    agent.handle()(stage.shell("exit 0"))
    running = asyncio.create_task(agent.run(signals=False))
    await until(lambda: stage.column(job_id, "attempt") == 2)
    agent.leave(at_once=True)
    await running

    assert stage.status(job_id) == "queued"
    assert stage.column(job_id, "next_attempt_at") is not None


async def test_what_an_agent_held_is_looked_for_when_it_runs_and_not_when_it_is_made(stage: Stage) -> None:
    job_id, key = await stage.enqueue(), stage.key()
    await taken(stage, key)

    pace = replace(SOON_SURE, unsure_seconds=3.0)
    agent, made_at = Agent(stage.url, key, lease_seconds=LEASE, pace=pace), monotonic()
    agent.handle()(stage.shell("exit 0"))
    await until(lambda: monotonic() > made_at + pace.unsure_seconds)
    running = asyncio.create_task(agent.run(signals=False))
    await until(lambda: stage.column(job_id, "attempt") == 2)
    agent.leave(at_once=True)
    await running


async def test_what_somebody_keeps_or_has_begun_is_left_alone(stage: Stage) -> None:
    """Another process with the same key renews one of them before every look, and this one works on the other."""
    kept, worked_on = await stage.enqueue(priority=1), await stage.enqueue()
    key = stage.key()
    await taken(stage, key)
    mine = await taken(stage, key)
    async with HttpRepository(stage.url, key) as repository:
        line = KeptLine(repository, stage.fleet, kept)
        unknown = UnknownJobs(SOON_SURE)
        unknown.lost_answer()
        unknown.begins(mine)
        looking = asyncio.create_task(unknown.look(line))
        await until(lambda: line.looks >= 4)
        looking.cancel()

    assert mine.id == worked_on
    assert [stage.column(job_id, "attempt") for job_id in (kept, worked_on)] == [1, 1]
    assert [stage.status(job_id) for job_id in (kept, worked_on)] == ["running", "running"]


class KeptLine(Line):
    """Before it is asked what is held, somebody renews a lease."""

    def __init__(self, repository: HttpRepository, fleet: Fleet, kept: object) -> None:
        super().__init__(repository, SOON_SURE)
        self.fleet = fleet
        self.kept = kept
        self.looks = 0

    async def ask(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        if operation.name == CLAIMS_HELD.name:
            self.looks += 1
            renewed = "update jobs set lease_expires_at = lease_expires_at + interval '1 second' where id = %s"
            self.fleet.execute(renewed, self.kept)
        return await super().ask(operation, request)


async def taken(stage: Stage, key: str) -> Assignment:
    """By whoever has the key, and never told anybody else."""
    async with HttpRepository(stage.url, key) as repository:
        claimed = await repository.call(CLAIMS_TAKE, Claim(lease_seconds=LEASE, auto_start=True))
    assert claimed.job is not None
    return claimed.job

"""What keeps an agent from ending or taking what it may not: each fence by itself, alone and together."""

import asyncio

import psycopg
import pytest

from agent_console.domain.errors import ConsoleError, Unauthorized
from agent_console.domain.secrets import Secret
from agent_console.domain.working import JobDone
from agent_console.repository.operations.working import JOBS_COMPLETE
from tests.queue.crew import Crew, claim, key_of, take_running, until

WAITING_FOR_A_LOCK = """
    select count(*) from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%%take_turn%%'
"""
ROTATED = """
    update agents set previous_key_hash = api_key_hash, api_key_hash = %s,
           previous_key_ends_at = now() + interval '1 hour' where name = 'atlas'
"""

# One job is taken the short way, two the way of many.
either_way = pytest.mark.parametrize("count", [1, 2])


@either_way
async def test_a_claim_waits_for_who_drains_its_agent_just_now(direct_crew: Crew, count: int) -> None:
    atlas = await direct_crew.agent("atlas")
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")
    made = await direct_crew.enqueue()

    with psycopg.connect(direct_crew.fleet.administration) as draining:
        draining.execute("update agents set drained_at = now() where name = 'atlas'")
        asking = asyncio.create_task(claim(atlas, count=count))
        await until(lambda: direct_crew.fleet.one(WAITING_FOR_A_LOCK) == 1)
    claimed = await asking

    assert (claimed.jobs, claimed.reason) == ((), "drained")
    assert direct_crew.status(made.id) == "queued"


@either_way
async def test_a_job_that_somebody_is_changing_is_passed_over(direct_crew: Crew, count: int) -> None:
    atlas = await direct_crew.agent("atlas")
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")
    first, second = await direct_crew.enqueue(), await direct_crew.enqueue()

    with psycopg.connect(direct_crew.fleet.administration) as changing:
        changing.execute("select from jobs where id = %s for update", (first.id,))
        async with asyncio.timeout(20):
            claimed = await claim(atlas, count=count)

    assert [job.id for job in claimed.jobs] == [second.id]
    assert direct_crew.status(first.id) == "queued"


async def test_an_old_key_works_until_its_grace_is_over_and_then_ends_and_takes_nothing(direct_crew: Crew) -> None:
    old = key_of(direct_crew.fleet, "atlas")
    new = Secret.mint(direct_crew.fleet.team_id(), direct_crew.id_of("atlas"))
    direct_crew.fleet.execute(ROTATED, new.hash)
    atlas = await direct_crew.with_secret(old)
    await direct_crew.enqueue()
    held = await take_running(atlas)
    waiting = await direct_crew.enqueue()

    direct_crew.fleet.execute("update agents set previous_key_ends_at = now() where name = 'atlas'")

    with pytest.raises(Unauthorized):
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=held.id, attempt=held.attempt))
    with pytest.raises(Unauthorized):
        await claim(atlas)
    assert (direct_crew.status(held.id), direct_crew.status(waiting.id)) == ("running", "queued")


async def test_whoever_was_revoked_ends_nothing_in_the_statement_of_the_others(direct_crew: Crew) -> None:
    agents = [await direct_crew.agent(name) for name in ("atlas", "beacon")]
    await direct_crew.enqueue()
    await direct_crew.enqueue()
    held = [await take_running(agent) for agent in agents]
    direct_crew.fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'atlas'")

    done = (JobDone(job_id=job.id, attempt=job.attempt) for job in held)
    ended = await asyncio.gather(
        *(agent.call(JOBS_COMPLETE, each) for agent, each in zip(agents, done, strict=True)),
        return_exceptions=True,
    )

    assert [isinstance(each, ConsoleError) for each in ended] == [True, False]
    assert [direct_crew.status(job.id) for job in held] == ["running", "succeeded"]

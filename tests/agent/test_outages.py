"""The server goes away and comes back at the same address: jobs go on, and are told afterwards."""

import asyncio
from pathlib import Path

import pytest

from agent_console.agent import Agent, JobContext
from agent_console.domain.errors import Unauthorized
from agent_console.server.bad_credentials import BLOCK_AT
from tests.agent.stage import FAST, Stage, until


@pytest.mark.rule("U000-5")
async def test_a_job_goes_on_while_the_server_is_away_and_is_told_afterwards(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    script = (
        f"echo before; until [ -e {tmp_path}/gone ]; do sleep 0.01; done; echo meanwhile; touch {tmp_path}/done"
    )

    async with stage.working(stage.shell(script)) as atlas:
        await until(lambda: stage.lines(job_id) == [("info", "before")])
        await stage.stop_server()
        (tmp_path / "gone").touch()
        await until((tmp_path / "done").exists)
        held_meanwhile = atlas.jobs
        await stage.start_server()
        became = await stage.ended(job_id)
        following = await stage.enqueue()
        and_then = await stage.ended(following)

    assert held_meanwhile == (job_id,)
    assert (became, stage.column(job_id, "attempt")) == ("succeeded", 1)
    assert stage.lines(job_id) == [("info", "before"), ("info", "meanwhile")]
    assert and_then == "succeeded"


async def test_an_agent_that_begins_before_its_server_waits_for_it(stage: Stage) -> None:
    job_id = await stage.enqueue()
    await stage.stop_server()

    async with stage.working(stage.shell("exit 0")) as atlas:
        await asyncio.sleep(0)
        waited = atlas.jobs
        await stage.start_server()
        became = await stage.ended(job_id)

    assert (waited, became) == ((), "succeeded")


async def test_an_end_that_was_told_but_not_answered_is_told_once(stage: Stage) -> None:
    """Whoever repeats what the server knows already is refused, and goes on to the next job."""
    first, second = await stage.enqueue(priority=1), await stage.enqueue()

    async def ends_by_itself(job: JobContext) -> None:
        if job.id == first:
            over = "update jobs set status = 'succeeded', finished_at = now(), lease_expires_at = null,"
            stage.fleet.execute(over + " claimed_by = null, look_at = null where id = %s", first)

    async with stage.working(ends_by_itself):
        became = [await stage.ended(first), await stage.ended(second)]

    assert became == ["succeeded", "succeeded"]


async def test_a_job_that_has_ended_is_told_as_it_ended_whoever_asks_it_to_stop_meanwhile(stage: Stage) -> None:
    job_id = await stage.enqueue()
    ended = asyncio.Event()

    async def works(job: JobContext) -> str:
        await stage.stop_server()
        job.event("last words")
        ended.set()
        return "done"

    async with stage.working(works):
        await ended.wait()
        stage.cancel(job_id)
        await stage.start_server()
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "result_summary")) == ("succeeded", "done")
    assert stage.lines(job_id) == [("info", "last words")]


@pytest.mark.rule("U001-1", "U000-21")
async def test_a_key_that_is_not_valid_ends_the_agent_with_its_jobs(stage: Stage) -> None:
    job_id = await stage.enqueue()
    began, ended = asyncio.Event(), asyncio.Event()
    agent = Agent(stage.url, stage.key(), pace=FAST)

    @agent.handle()
    async def waits(_: JobContext) -> None:
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    running = asyncio.create_task(agent.run(signals=False))
    await began.wait()
    stage.key()

    with pytest.raises(Unauthorized):
        await running
    assert ended.is_set()
    assert stage.status(job_id) == "running"


async def test_a_dead_key_that_is_started_again_and_again_shuts_nobody_out(stage: Stage) -> None:
    """A supervisor brings it back for ever; it must cost one bad credential a time."""
    dead = stage.key()
    stage.key()

    async with asyncio.timeout(60):
        for _ in range(BLOCK_AT - 1):
            agent = Agent(stage.url, dead, pace=FAST)
            agent.handle()(stage.shell("exit 0"))
            with pytest.raises(Unauthorized):
                await agent.run(signals=False)

    job_id = await stage.enqueue()
    async with stage.working(stage.shell("exit 0")):
        assert await stage.ended(job_id) == "succeeded"

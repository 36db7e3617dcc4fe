"""An agent that leaves: what runs may end within the grace, what does not goes back to the queue at no cost."""

import asyncio
import logging
from pathlib import Path

import pytest

from agent_console.agent import Agent, JobContext
from agent_console.domain.errors import Invalid
from agent_console.domain.states import Lifecycle
from agent_console.domain.working import Claim
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.working import CLAIMS_TAKE
from tests.agent.processes import alive
from tests.agent.stage import FAST, Stage, until
from tests.agent.test_stopping import HEEDS_NOTHING, pids_in

PRESENCE = "select presence from agent_runtime where agent_id = %s"


async def test_a_job_that_runs_may_end_and_no_other_is_begun(stage: Stage, tmp_path: Path) -> None:
    first, second = await stage.enqueue(priority=1), await stage.enqueue()
    agent = Agent(stage.url, stage.key(), pace=FAST, grace=60)
    agent.handle()(stage.shell(f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.01; done"))

    running = asyncio.create_task(agent.run(signals=False))
    await until((tmp_path / "begun").exists)
    agent.leave()
    (tmp_path / "go").touch()
    await running

    assert (stage.status(first), stage.status(second)) == ("succeeded", "queued")
    assert stage.fleet.one("select count(*) from job_events where job_id = %s", second) == 1
    assert stage.fleet.one(PRESENCE, stage.fleet.agent_id("atlas")) == "offline"


async def test_after_the_grace_a_job_is_stopped_and_given_back_at_no_cost(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    agent = Agent(stage.url, stage.key(), pace=FAST, grace=0.1)
    agent.handle()(stage.shell(HEEDS_NOTHING.format(file=tmp_path / "pids")))

    running = asyncio.create_task(agent.run(signals=False))
    pids = await pids_in(tmp_path / "pids")
    tries_left = stage.column(job_id, "max_attempts - attempt")
    agent.leave()
    await running

    await until(lambda: not any(alive(pid) for pid in pids))
    given_back = "select status, max_attempts - attempt, agent_id, next_attempt_at from jobs where id = %s"
    assert stage.fleet.execute(given_back, job_id) == [("queued", tries_left, None, None)]


async def test_an_agent_that_can_not_say_goodbye_leaves_all_the_same(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    agent = Agent(stage.url, stage.key(), pace=FAST, grace=0.1)
    agent.handle()(stage.shell(HEEDS_NOTHING.format(file=tmp_path / "pids")))

    running = asyncio.create_task(agent.run(signals=False))
    pids = await pids_in(tmp_path / "pids")
    await stage.stop_server()
    agent.leave()
    await running

    await until(lambda: not any(alive(pid) for pid in pids))
    assert stage.status(job_id) == "running"


@pytest.mark.parametrize("lifecycle", [Lifecycle.STOPPING, Lifecycle.HIBERNATING])
async def test_an_agent_that_the_server_asks_to_end_leaves_in_order(stage: Stage, lifecycle: Lifecycle) -> None:
    agent = Agent(stage.url, stage.key(), pace=FAST)

    @agent.handle()
    async def nothing(_: JobContext) -> None:
        return None

    stage.fleet.execute("update agents set hosted = true where name = 'atlas'")
    stage.fleet.execute(
        "update agent_runtime set lifecycle = %s where agent_id = %s",
        int(lifecycle),
        stage.fleet.agent_id("atlas"),
    )
    async with asyncio.timeout(60):
        await agent.run(signals=False)

    assert stage.fleet.one(PRESENCE, stage.fleet.agent_id("atlas")) == "offline"


async def shorten_leases(stage: Stage, seconds: int) -> None:
    """Until every server has noticed."""
    shorter = "insert into settings (team_id, name, value) values (%s, 'lease_max_seconds', %s::text::jsonb)"
    stage.fleet.execute(shorter, stage.fleet.team_id(), seconds)
    async with asyncio.timeout(60), HttpRepository(stage.url, stage.key("beacon")) as beacon:
        with pytest.raises(Invalid):
            while True:
                await beacon.call(CLAIMS_TAKE, Claim(lease_seconds=seconds + 1, wait_seconds=0.1))


async def test_what_is_done_counts_although_the_next_job_is_refused(stage: Stage) -> None:
    """The team has shortened its leases meanwhile: this agent asks for too long a one."""
    job_id = await stage.enqueue()
    began, go = asyncio.Event(), asyncio.Event()
    agent = Agent(stage.url, stage.key(), lease_seconds=600, pace=FAST)

    @agent.handle()
    async def works(_: JobContext) -> str:
        began.set()
        await go.wait()
        return "done"

    running = asyncio.create_task(agent.run(signals=False))
    await began.wait()
    await shorten_leases(stage, 300)
    go.set()
    with pytest.raises(Invalid, match="lease"):
        await running

    assert (stage.status(job_id), stage.column(job_id, "result_summary")) == ("succeeded", "done")


async def test_an_agent_that_is_refused_more_jobs_ends_those_it_has(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = await stage.enqueue()
    began, go = asyncio.Event(), asyncio.Event()
    agent = Agent(stage.url, stage.key(), concurrency=2, lease_seconds=600, pace=FAST, grace=60)

    @agent.handle()
    async def works(job: JobContext) -> str:
        began.set()
        await go.wait()
        return f"stopped: {job.cancelled}"

    caplog.set_level(logging.INFO, "agent_console.agent")
    running = asyncio.create_task(agent.run(signals=False))
    await began.wait()
    await shorten_leases(stage, 300)
    await until(lambda: "Leaving; 1 job may still end" in caplog.text or running.done())
    go.set()
    with pytest.raises(Invalid, match="lease"):
        await running

    assert (stage.status(job_id), stage.column(job_id, "result_summary")) == ("succeeded", "stopped: False")

"""An agent that leaves: what runs may end within the grace, what does not goes back to the queue at no cost."""

import asyncio
from pathlib import Path

import pytest

from agent_console.agent import Agent, JobContext
from agent_console.domain.states import Lifecycle
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
    agent.leave()
    await running

    await until(lambda: not any(alive(pid) for pid in pids))
    given_back = "select status, attempt, agent_id, next_attempt_at from jobs where id = %s"
    assert stage.fleet.execute(given_back, job_id) == [("queued", 1, None, None)]


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

"""Work that has to stop: cancelled jobs, lost leases, and what a program leaves behind."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_console.agent import JobContext
from agent_console.domain.job_acts import JobCancelling
from agent_console.repository.operations.job_acts import JOBS_CANCEL
from tests.agent.processes import alive, children_of
from tests.agent.stage import Stage, until

# Says who it and its child are, and waits. The child ends with it or not at all.
WITH_CHILD = "sleep 600 & echo $$ $! > {file}.new; mv {file}.new {file}; wait"
HEEDS_NOTHING = "trap '' TERM; " + WITH_CHILD.replace("wait", "while :; do wait; done")


async def pids_in(file: Path) -> list[int]:
    await until(file.exists)
    return _numbers(file)


def _numbers(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]


@pytest.mark.rule("U001-13", "U001-16")
@pytest.mark.parametrize("script", [WITH_CHILD, HEEDS_NOTHING], ids=["heeds TERM", "ignores TERM"])
async def test_a_cancelled_job_is_stopped_with_all_its_processes_and_acknowledged(
    stage: Stage, tmp_path: Path, script: str
) -> None:
    job_id = await stage.enqueue()
    before = {child.pid for child in children_of(os.getpid())}

    async with stage.working(stage.shell(script.format(file=tmp_path / "pids")), grace=0.2):
        pids = await pids_in(tmp_path / "pids")
        async with stage.caller() as ole:
            await ole.call(JOBS_CANCEL, JobCancelling(job_id=job_id))
        became = await stage.ended(job_id)
        await until(lambda: not any(alive(pid) for pid in pids))

    assert became == "cancelled"
    assert {child.pid for child in children_of(os.getpid())} <= before


async def test_a_program_may_clean_up_within_the_grace(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    script = f"trap 'echo cleaned; exit 0' TERM; echo 1 > {tmp_path}/there; while :; do sleep 0.02; done"

    async with stage.working(stage.shell(script), grace=60):
        await until((tmp_path / "there").exists)
        stage.cancel(job_id)
        became = await stage.ended(job_id)

    assert became == "cancelled"
    assert ("info", "cleaned") in stage.lines(job_id)


async def test_a_handler_that_goes_on_is_cancelled_when_the_grace_is_over(stage: Stage) -> None:
    job_id = await stage.enqueue()
    seen: list[bool] = []

    async def stubborn(job: JobContext) -> None:
        job.event("begun")
        await job.until_cancelled()
        seen.append(job.cancelled)
        await asyncio.sleep(3_600)

    async with stage.working(stubborn, grace=0.1):
        await until(lambda: stage.lines(job_id) == [("info", "begun")])
        stage.cancel(job_id)
        became = await stage.ended(job_id)

    assert (became, seen) == ("cancelled", [True])


@pytest.mark.rule("R003-34")
async def test_a_lost_lease_ends_the_program_and_nothing_more_is_told(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell(WITH_CHILD.format(file=tmp_path / "pids"))) as atlas:
        pids = await pids_in(tmp_path / "pids")
        stage.give_to_another(job_id)
        await until(lambda: not any(alive(pid) for pid in pids))
        await until(lambda: not atlas.jobs)

    held = stage.fleet.execute("select status, agent_id, attempt from jobs where id = %s", job_id)
    assert held == [("running", stage.fleet.agent_id("beacon"), 2)]
    assert stage.lines(job_id) == []


async def test_what_a_program_leaves_behind_is_ended_and_reaped(stage: Stage, tmp_path: Path) -> None:
    """The job is done when its program is, though a child of it still holds the pipe."""
    job_id = await stage.enqueue()
    before = {child.pid for child in children_of(os.getpid())}
    script = f"sleep 600 & echo $$ $! > {tmp_path}/pids; echo done"

    async with stage.working(stage.shell(script)):
        became = await stage.ended(job_id)
        pids = await pids_in(tmp_path / "pids")
        await until(lambda: not any(alive(pid) for pid in pids))

    assert (became, stage.lines(job_id)) == ("succeeded", [("info", "done")])
    assert {child.pid for child in children_of(os.getpid())} <= before


async def test_who_left_the_group_is_not_waited_for(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pids; exec sleep 600' & until [ -s {tmp_path}/pids ]; do :; done"

    async with stage.working(stage.shell(script)):
        became = await stage.ended(job_id)
        [pid] = await pids_in(tmp_path / "pids")
        os.kill(pid, 9)

    assert became == "succeeded"


@pytest.mark.rule("U001-17")
async def test_several_jobs_run_at_once_and_no_more_than_asked_for(stage: Stage, tmp_path: Path) -> None:
    """Each waits until three are there; a fourth begins when one of them has ended."""
    jobs = [await stage.enqueue() for _ in range(6)]
    script = f"""
        cd {tmp_path}; touch begun.$$
        until [ $(ls -d begun.* | wc -l) -ge 3 ]; do sleep 0.01; done
    """
    most: list[int] = []

    async with stage.working(stage.shell(script), concurrency=3) as atlas:
        ended = {asyncio.create_task(stage.ended(job_id)) for job_id in jobs}
        while pending := [task for task in ended if not task.done()]:
            most.append(len(atlas.jobs))
            await asyncio.wait(pending, timeout=0.01)

    assert {task.result() for task in ended} == {"succeeded"}
    assert max(most) == 3

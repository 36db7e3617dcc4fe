"""What time does to runs and approvals when nobody else does anything."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_console.domain.delegation import DelegationState
from agent_console.domain.ids import RunId
from agent_console.domain.runs import Run, RunAsked, RunCancelling
from agent_console.domain.states import RunStatus
from agent_console.domain.working import CancelAcknowledged, Claim, JobDone, JobFailed
from agent_console.repository.operations.runs import RUNS_CANCEL, RUNS_GET
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL
from agent_console.repository.postgres.duties.approvals import END_APPROVALS
from agent_console.repository.postgres.duties.queue import TEND_JOBS
from agent_console.repository.postgres.duties.runs import END_OVERDUE_RUNS
from agent_console.repository.postgres.repository import Backend
from tests.support.asking import OLE, Callers, add_route, asks, callers, set_setting, started, trail
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.stories import last_line
from tests.support.taking import taken

OVER = "update runs set deadline_at = now() - interval '1 second'"


@pytest.fixture
async def crew(fleet: Fleet) -> AsyncIterator[Callers]:
    async with callers(fleet, "direct") as everybody:
        yield everybody


@pytest.fixture
def backend(crew: Callers) -> Backend:
    assert crew.backend is not None
    return crew.backend


async def seen(crew: Callers, run_id: RunId) -> Run:
    return await (await crew.person(OLE)).call(RUNS_GET, RunAsked(run_id=run_id))


def of_run(fleet: Fleet) -> list[tuple[object, ...]]:
    return [row[:2] for row in trail(fleet, "run.%")]


@pytest.mark.rule("R002-55", "R002-131")
@pytest.mark.parametrize("held", [False, True], ids=["nobody came for it", "its agent is at it"])
async def test_a_run_ends_with_its_deadline(crew: Callers, backend: Backend, fleet: Fleet, held: bool) -> None:
    run = await started(await crew.person(OLE), fleet, add_thread(fleet))
    if held:
        taken(fleet, "atlas")
        fleet.execute("update jobs set look_at = now() - interval '1 second' where id = %s", run.job_id)
    fleet.execute(OVER)

    ended = [await duty.round(backend) for duty in (END_OVERDUE_RUNS, TEND_JOBS, END_OVERDUE_RUNS)]

    over = await seen(crew, run.id)
    assert (over.status, over.error_code) == (RunStatus.TIMEOUT, "deadline")
    assert over.ended_at is not None
    assert ended[0] == (0 if held else 1)
    status = fleet.one("select status from jobs where id = %s", run.job_id)
    assert status == ("failed" if held else "cancelled")
    assert run.job_id is not None
    assert "the deadline of its run is over" in str(last_line(fleet, run.job_id)[0])
    begun = [("run.create", "Ole Berg")] + [("run.start", "atlas")] * held
    assert of_run(fleet) == [*begun, ("run.timeout", "agent-console")]


async def test_a_run_that_has_time_left_is_left_alone(crew: Callers, backend: Backend, fleet: Fleet) -> None:
    run = await started(await crew.person(OLE), fleet, add_thread(fleet))

    assert await END_OVERDUE_RUNS.round(backend) == 0
    assert await seen(crew, run.id) == run


async def test_a_run_whose_lease_is_lost_for_good_fails_by_the_systems_word(
    crew: Callers, backend: Backend, fleet: Fleet
) -> None:
    run = await started(await crew.person(OLE), fleet, add_thread(fleet))
    taken(fleet, "atlas")
    lost = "lease_expires_at = now() - interval '1 second', look_at = now() - interval '1 second'"
    fleet.execute(f"update jobs set {lost}, max_attempts = 1 where id = %s", run.job_id)

    await TEND_JOBS.round(backend)

    assert (await seen(crew, run.id)).status is RunStatus.FAILED
    assert of_run(fleet)[-1] == ("run.fail", "agent-console")


async def test_an_approval_nobody_decided_expires_once(crew: Callers, backend: Backend, fleet: Fleet) -> None:
    """Several processes at it, and the agent that waits learns of it."""
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    set_setting(fleet, "approval_expiry_minutes", 1)
    set_setting(fleet, "duplicate_window_seconds", 0)
    atlas = await crew.agent("atlas")
    over = [(await asks(atlas, fleet, thread_id, key=f"k{number}")).approval for number in range(3)]
    fleet.execute("update approvals set expires_at = expires_at - interval '1 minute'")
    await asks(atlas, fleet, thread_id, key="later")

    ended = await asyncio.gather(*(END_APPROVALS.round(backend) for _ in range(4)))

    assert sum(rows or 0 for rows in ended) == len(over)
    assert trail(fleet, "approval.%") == [("approval.expire", "agent-console", "block")] * len(over)
    assert (await asks(atlas, fleet, thread_id, key="k0")).state is DelegationState.EXPIRED
    assert (await asks(atlas, fleet, thread_id, key="later")).state is DelegationState.WAITING


@pytest.mark.parametrize("how", ["timeout", "cancelled", "failed", "succeeded"])
async def test_a_request_is_withdrawn_when_the_run_that_asked_ends_in_vain(
    crew: Callers, backend: Backend, fleet: Fleet, how: str
) -> None:
    """One that ended well asked for something that may still be done without it."""
    ole, thread_id = await crew.person(OLE), add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    run, atlas = await started(ole, fleet, thread_id), await crew.agent("atlas")
    (job,) = (await atlas.call(CLAIMS_TAKE, Claim(auto_start=True, allowed_types=("agent_run",)))).jobs
    asked = await asks(atlas, fleet, thread_id, parent=run.id, key="once")
    assert await END_APPROVALS.round(backend) == 0

    match how:
        case "timeout":
            fleet.execute("update jobs set look_at = now() - interval '1 second' where id = %s", job.id)
            fleet.execute(OVER)
            await TEND_JOBS.round(backend)
        case "cancelled":
            await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id, reason="not needed"))
            await atlas.call(JOBS_ACKNOWLEDGE, CancelAcknowledged(job_id=job.id, attempt=job.attempt))
        case "failed":
            failed = JobFailed(job_id=job.id, attempt=job.attempt, error="no disk", retryable=False)
            await atlas.call(JOBS_FAIL, failed)
        case _:
            await atlas.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=job.attempt))
    ended = await END_APPROVALS.round(backend)

    over = await seen(crew, run.id)
    again = await asks(atlas, fleet, thread_id, key="once", parent=run.id)
    assert over.status.value == how
    assert asked.state is DelegationState.WAITING
    if how == "succeeded":
        assert (ended, again.state, trail(fleet, "approval.%")) == (0, DelegationState.WAITING, [])
    else:
        assert (ended, again.state) == (1, DelegationState.WITHDRAWN)
        assert trail(fleet, "approval.%") == [("approval.withdraw", "agent-console", "block")]
        assert await END_APPROVALS.round(backend) == 0

"""What an agent holds, as the queue sees it: also what the agent never heard of."""

import pytest

from agent_console.domain.errors import Forbidden
from agent_console.domain.records import Nothing
from agent_console.domain.working import JobDone
from agent_console.repository.operations.working import CLAIMS_HELD, JOBS_COMPLETE
from tests.queue.crew import Crew, take, take_running, time_passes


async def test_an_agent_hears_what_it_holds_and_nothing_of_others(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 5")
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    for _ in range(4):
        await crew.enqueue()
    first, second, done = await take_running(atlas), await take(atlas), await take_running(atlas)
    others = await take(beacon)
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=done.id, attempt=done.attempt))

    held = (await atlas.call(CLAIMS_HELD, Nothing())).jobs

    assert [(job.id, job.status, job.attempt) for job in held] == [
        (job.id, job.status, job.attempt) for job in (first, second)
    ]
    assert [job.lease_expires_at for job in held] == [first.lease_expires_at, second.lease_expires_at]
    assert [job.id for job in (await beacon.call(CLAIMS_HELD, Nothing())).jobs] == [others.id]


async def test_what_has_outlived_its_lease_is_nobodys(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    await crew.enqueue()
    await take_running(atlas)

    time_passes(crew.fleet, 121)

    assert (await atlas.call(CLAIMS_HELD, Nothing())).jobs == ()


async def test_only_an_agent_holds_jobs(crew: Crew) -> None:
    with pytest.raises(Forbidden):
        await crew.operator.call(CLAIMS_HELD, Nothing())

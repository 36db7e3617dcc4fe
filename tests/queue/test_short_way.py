"""Which turns go the short way and which the long one: each is tried while the other way is closed."""

import asyncio

import pytest

from agent_console.domain.errors import ConsoleError
from agent_console.domain.working import ClaimWanted, JobDone, JobFailed
from agent_console.repository.operations.working import JOBS_COMPLETE, JOBS_FAIL
from agent_console.repository.port import REFETCH, Change, Topic
from tests.queue.crew import Crew, claim, take_running
from tests.queue.more_agents import crowd
from tests.repository.test_contract_changes import heard_until, next_of

MANY = 5
CLOSED = "alter function {} rename to closed"


def close(crew: Crew, way: str) -> None:
    crew.fleet.execute(CLOSED.format(way))


async def test_a_plain_turn_goes_the_short_way(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    first, second = await direct_crew.enqueue(), await direct_crew.enqueue()
    close(direct_crew, "take_turns")

    held = await take_running(atlas)
    done = JobDone(job_id=held.id, attempt=1, result_summary="7 files", claim_next=ClaimWanted(auto_start=True))
    ended = await atlas.call(JOBS_COMPLETE, done)
    direct_crew.fleet.execute("update agents set drained_at = now() where name = 'atlas'")
    last = await atlas.call(JOBS_COMPLETE, JobDone(job_id=second.id, attempt=1))

    assert held.id == first.id
    assert ended.next is not None
    assert [job.id for job in ended.next.jobs] == [second.id]
    assert last.next is None
    assert [direct_crew.status(job.id) for job in (first, second)] == ["succeeded"] * 2
    assert direct_crew.row(first.id)["result_summary"] == "7 files"


async def test_a_turn_that_is_not_plain_goes_the_long_way_at_once(direct_crew: Crew) -> None:
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 3 where name = 'atlas'")
    atlas = await direct_crew.agent("atlas")
    for _ in range(4):
        await direct_crew.enqueue()
    close(direct_crew, "take_turn")

    with_result, with_files = (await claim(atlas, count=2, auto_start=True)).jobs
    (failed,) = (await claim(atlas, count=2, auto_start=True)).jobs
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=with_result.id, attempt=1, result={"files": 7}))
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=with_files.id, attempt=1, artifacts_path="/files"))
    await atlas.call(JOBS_FAIL, JobFailed(job_id=failed.id, attempt=1, error="broken", retryable=False))
    with pytest.raises(ConsoleError):
        await claim(atlas)

    jobs = (with_result, with_files, failed)
    assert [direct_crew.status(job.id) for job in jobs] == ["succeeded", "succeeded", "failed"]
    assert direct_crew.row(with_files.id)["artifacts_path"] == "/files"


async def test_each_of_many_who_come_at_once_gets_its_own_answer(direct_crew: Crew) -> None:
    """The first is served alone; the others have gathered meanwhile."""
    agents = [await direct_crew.with_secret(agent.secret) for agent in crowd(direct_crew.fleet, MANY)]
    made = [await direct_crew.enqueue() for _ in range(2 * MANY)]
    held = [await take_running(agent) for agent in agents]

    ended = await asyncio.gather(
        *(
            agent.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=1, claim_next=ClaimWanted()))
            for agent, job in zip(agents, held, strict=True)
        )
    )

    assert [end.job_id for end in ended] == [job.id for job in held] == [job.id for job in made[:MANY]]
    got = [job.id for end in ended if end.next is not None for job in end.next.jobs]
    assert sorted(got) == sorted(job.id for job in made[MANY:])
    assert [direct_crew.status(job.id) for job in made] == ["succeeded"] * MANY + ["assigned"] * MANY


@pytest.mark.parametrize("count", [1, 2])
async def test_whoever_looks_on_hears_of_what_is_taken_and_ended(direct_crew: Crew, count: int) -> None:
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")
    atlas, made = await direct_crew.agent("atlas"), await direct_crew.enqueue()
    changes = direct_crew.operator.changes()
    assert await next_of(changes) == REFETCH
    heard = Change(topic=Topic.JOBS, id=str(made.id))

    await claim(atlas, count=count, auto_start=True)
    await heard_until(changes, heard)
    with pytest.raises(ConsoleError):
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=2))
    other = await direct_crew.enqueue("else")
    assert heard not in await heard_until(changes, Change(topic=Topic.JOBS, id=str(other.id)))
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=1))
    await heard_until(changes, heard)
    await changes.aclose()

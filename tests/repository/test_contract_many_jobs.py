"""Many jobs at once, on both repositories: all of them or none, each in its own lane, each with its story."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_console.domain.errors import Conflict, Invalid, NotFound
from agent_console.domain.ids import AgentId
from agent_console.domain.jobs import JobAsked, NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_GET
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.port import Repository
from tests.support.fleet import Fleet


def report(month: int, **more: object) -> NewJob:
    return NewJob.model_validate({"type": "monthly", "payload": {"month": month}} | more)


async def test_each_gets_its_job_its_lane_and_its_story(repository: Repository, fleet: Fleet) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    atlas = fleet.agent_id("atlas")
    wanted = (
        report(1),
        report(2, priority=7, required_capabilities=["tool:report"]),
        report(3, bound_agent_id=atlas),
        report(4, scheduled_for=later),
    )

    answer = await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=wanted))

    made = [await repository.call(JOBS_GET, JobAsked(job_id=job_id)) for job_id in answer.ids]
    assert answer.made == 4
    assert [job.payload["month"] for job in made] == [1, 2, 3, 4]
    assert [job.status for job in made] == [JobStatus.QUEUED] * 3 + [JobStatus.SCHEDULED]
    assert (made[1].priority, made[1].required_capabilities) == (7, ("tool:report",))
    assert (made[2].bound_agent_id, made[3].scheduled_for is not None) == (atlas, True)
    assert fleet.one("select count(distinct lane_id) from jobs where id = any(%s)", list(answer.ids)) == 3
    assert fleet.execute(
        "select message, count(*) from job_events where job_id = any(%s) group by 1 order by 1", list(answer.ids)
    ) == [("created as queued", 3), ("created as scheduled", 1)]


async def test_one_act_is_one_line_of_the_audit_trail(repository: Repository, fleet: Fleet) -> None:
    answer = await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=tuple(report(n) for n in range(1, 4))))

    assert fleet.execute("select resource_id, metadata from audit_log where action = 'job.create_many'") == [
        (str(answer.ids[0]), {"made": 3, "repeated": 0, "types": "monthly"})
    ]


async def test_the_same_keys_again_give_the_same_jobs(repository: Repository) -> None:
    wanted = NewJobs(jobs=tuple(report(n, idempotency_key=f"month-{n}") for n in range(1, 4)))
    first = await repository.call(JOBS_CREATE_MANY, wanted)

    again = await repository.call(JOBS_CREATE_MANY, wanted)
    mixed = await repository.call(
        JOBS_CREATE_MANY, NewJobs(jobs=(report(9), report(2, idempotency_key="month-2")))
    )

    assert (again.ids, again.made) == (first.ids, 0)
    assert (mixed.ids[1], mixed.made) == (first.ids[1], 1)


@pytest.mark.parametrize("bad", ["a key for other work", "nobody's agent"])
async def test_one_that_can_not_be_made_leaves_none(repository: Repository, fleet: Fleet, bad: str) -> None:
    await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=(report(1, idempotency_key="one"),)))
    before = fleet.one("select count(*) from jobs")
    wrong = (
        report(2, idempotency_key="one") if bad.startswith("a key") else report(2, bound_agent_id=AgentId.new())
    )

    with pytest.raises(Conflict if bad.startswith("a key") else NotFound):
        await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=(report(5), wrong)))

    assert fleet.one("select count(*) from jobs") == before


async def test_one_key_twice_in_one_call_is_a_mistake(repository: Repository) -> None:
    twice = tuple(report(n, idempotency_key="same") for n in (1, 2))

    with pytest.raises(Invalid, match="same idempotency key"):
        await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=twice))

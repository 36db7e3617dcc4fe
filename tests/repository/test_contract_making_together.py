"""Jobs that one caller asks for at the same time go in together; each has its own answer and its own act."""

import asyncio

import pytest

from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.ids import UserId
from agent_console.domain.jobs import Job, NewJob
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import Repository
from tests.support.fleet import Fleet

MANY = 40

# Everything of one transaction has one time.
TRANSACTIONS = "select count(distinct created_at) from jobs where type = 'together'"


def new(number: int, **more: object) -> NewJob:
    return NewJob.model_validate({"type": "together", "payload": {"n": number}} | more)


async def made_at_once(repository: Repository, *wanted: NewJob) -> list[Job | BaseException]:
    return await asyncio.gather(*(repository.call(JOBS_CREATE, each) for each in wanted), return_exceptions=True)


async def test_they_go_in_with_few_transactions_and_each_gets_its_own(
    repository: Repository, fleet: Fleet
) -> None:
    made = await made_at_once(repository, *(new(number) for number in range(MANY)))

    assert [job.payload for job in made if isinstance(job, Job)] == [{"n": number} for number in range(MANY)]
    assert fleet.one("select count(*) from jobs where type = 'together'") == MANY
    assert (
        fleet.one("select count(*) from job_events e join jobs j on j.id = e.job_id where type = 'together'")
        == MANY
    )
    told = fleet.execute("select resource_id from audit_log where action = 'job.create'")
    assert {row[0] for row in told} == {str(job.id) for job in made if isinstance(job, Job)}
    assert len(told) == MANY
    transactions = fleet.one(TRANSACTIONS)
    assert isinstance(transactions, int) and transactions < MANY / 4


async def test_nobody_pays_for_another_ones_mistake(repository: Repository, fleet: Fleet) -> None:
    """The person behind the request is known to nobody, which only the database finds out."""
    wrong = new(7, requested_by_user_id=str(UserId.new()))
    wanted = [new(number) for number in range(MANY)]
    wanted[7] = wrong

    made = await made_at_once(repository, *wanted)

    assert [place for place, each in enumerate(made) if isinstance(each, ConsoleError)] == [7]
    assert fleet.one("select count(*) from jobs where type = 'together'") == MANY - 1
    assert fleet.one("select count(*) from audit_log where action = 'job.create'") == MANY - 1


async def test_a_used_key_among_them_is_its_own_affair(repository: Repository, fleet: Fleet) -> None:
    first = await repository.call(JOBS_CREATE, new(0, idempotency_key="nightly"))

    again, other, plain, fresh = await made_at_once(
        repository,
        new(0, idempotency_key="nightly"),
        new(1, idempotency_key="nightly"),
        new(2),
        new(3, idempotency_key="weekly"),
    )

    assert isinstance(again, Job) and again.id == first.id
    assert isinstance(other, Conflict) and other.details["job_id"] == str(first.id)
    assert isinstance(plain, Job) and isinstance(fresh, Job)
    assert fleet.one("select count(*) from jobs where type = 'together'") == 3
    assert fleet.one("select count(*) from audit_log where action = 'job.create'") == 3


async def test_one_key_for_two_different_jobs_at_once_makes_one(repository: Repository, fleet: Fleet) -> None:
    made = await made_at_once(repository, *(new(number, idempotency_key="race") for number in range(6)))

    assert len([each for each in made if isinstance(each, Job)]) == 1
    assert len([each for each in made if isinstance(each, Conflict)]) == 5
    assert fleet.one("select count(*) from jobs where type = 'together'") == 1


async def test_each_says_whether_anybody_could_take_it(repository: Repository) -> None:
    easy, hard = await made_at_once(
        repository, new(1), new(2, required_capabilities=["levitation", "tool:unheard-of"])
    )

    assert isinstance(easy, Job) and easy.warnings == ()
    assert isinstance(hard, Job) and "levitation" in hard.warnings[0]


@pytest.mark.parametrize("leaving", [0, MANY // 2])
async def test_who_leaves_takes_nobody_along(repository: Repository, fleet: Fleet, leaving: int) -> None:
    calls = [asyncio.ensure_future(repository.call(JOBS_CREATE, new(number))) for number in range(MANY)]
    await asyncio.sleep(0)

    calls[leaving].cancel()
    made = await asyncio.gather(*calls, return_exceptions=True)

    assert [place for place, each in enumerate(made) if not isinstance(each, Job)] == [leaving]
    numbers = {row[0] for row in fleet.execute("select payload ->> 'n' from jobs where type = 'together'")}
    assert numbers >= {str(number) for number in range(MANY) if number != leaving}

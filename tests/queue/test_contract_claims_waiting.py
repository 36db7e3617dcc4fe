"""Waiting for a job: it ends the wait at once, wherever it was enqueued, and who leaves leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import psycopg
import pytest

from agent_console.domain.jobs import NewJob
from agent_console.domain.working import Claimed
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.queue import waiting
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import Crew, claim, take_running, until
from tests.queue.more_agents import crowd
from tests.support.fleet import Fleet

LONG = 25.0


@pytest.fixture
def nobody_looks_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a word that something came ends a wait: a word that is not said costs the whole of it."""
    monkeypatch.setattr(waiting, "LOOK_AGAIN_SECONDS", 60.0)


@pytest.fixture
async def elsewhere(quiet: object, crew: Crew) -> AsyncIterator[Repository]:
    """The operator in another process."""
    backend = Backend(crew.fleet.working)
    yield PostgresRepository(backend, by_name("example", "ole@example.com"))
    await backend.close()


def waiting_for_one(agent: Repository) -> "asyncio.Task[Claimed]":
    return asyncio.create_task(claim(agent, wait_seconds=LONG, auto_start=True))


async def listening(crew: Crew) -> None:
    """Until somebody hears of new work, so that nothing but a notice is needed."""
    heard = "select count(*) from pg_stat_activity where query like 'listen %%' and datname = current_database()"
    await until(lambda: crew.fleet.one(heard) != 0)


@pytest.mark.usefixtures("nobody_looks_by_himself")
@pytest.mark.parametrize("bound", [False, True], ids=["anybody's", "bound"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_new_job_ends_the_wait_at_once(crew: Crew, elsewhere: Repository, where: str, bound: bool) -> None:
    atlas = await crew.agent("atlas")
    bound_to = crew.id_of("atlas") if bound else None
    asking = waiting_for_one(atlas)
    await listening(crew)
    began = monotonic()

    operator = crew.operator if where == "here" else elsewhere
    made = await operator.call(JOBS_CREATE, NewJob(type="work", payload={}, bound_agent_id=bound_to))
    claimed = await asking

    assert [job.id for job in claimed.jobs] == [made.id]
    assert monotonic() - began < LONG / 2


@pytest.mark.usefixtures("nobody_looks_by_himself")
async def test_in_the_same_process_no_notice_of_the_database_is_needed(quiet: Fleet) -> None:
    backend = Backend(quiet.working, listen_dsn="postgresql://127.0.0.1:1/nobody")
    (agent,) = crowd(quiet, 1)
    asking = waiting_for_one(PostgresRepository(backend, by_token(agent.secret)))
    await until(lambda: bool(vars(backend.queue.waiting)["_waiting"]))
    began = monotonic()

    operator = PostgresRepository(backend, by_name("example", "ole@example.com"))
    made = await operator.call(JOBS_CREATE, NewJob(type="work", payload={}))
    claimed = await asking
    await backend.close()

    assert [job.id for job in claimed.jobs] == [made.id]
    assert monotonic() - began < LONG / 2


async def test_a_wait_that_brings_nothing_ends_in_its_time_and_says_why(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    await crew.enqueue(required_capabilities=["nobody"])
    began = monotonic()

    claimed = await claim(atlas, wait_seconds=0.3)

    assert monotonic() - began >= 0.3
    assert (claimed.jobs, claimed.reason) == ((), "nothing_for_you")


async def test_whoever_waits_gets_what_time_makes_due(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    lost = await crew.enqueue()
    beacon = await crew.agent("beacon")
    await take_running(beacon)
    asking = waiting_for_one(atlas)
    await listening(crew)

    crew.time_passes(121)
    await until(lambda: crew.status(lost.id) != "running")
    crew.time_passes(34)
    claimed = await asking

    assert [(job.id, job.attempt) for job in claimed.jobs] == [(lost.id, 2)]


async def test_whoever_stops_waiting_is_forgotten_and_takes_nothing(direct_crew: Crew) -> None:
    crew = direct_crew
    atlas = await crew.agent("atlas")
    assert isinstance(atlas, PostgresRepository)
    asking = waiting_for_one(atlas)
    await listening(crew)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    made = await crew.enqueue()
    beacon = await claim(await crew.agent("beacon"))

    queue = atlas.backend.queue
    assert not vars(queue.waiting)["_waiting"]
    assert not vars(queue.waiting)["_hearing"]
    assert [job.id for job in beacon.jobs] == [made.id]


async def test_what_was_claimed_for_a_caller_that_went_away_comes_back_with_its_lease(direct_crew: Crew) -> None:
    """The claim was made: nobody can tell whether its answer was heard. The job is held, and not for ever."""
    crew = direct_crew
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue()
    asking = asyncio.create_task(claim(atlas, lease_seconds=10))
    await until(lambda: crew.status(made.id) != "queued" or asking.done())

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    while crew.status(made.id) == "queued":
        await claim(atlas, lease_seconds=10)
    crew.time_passes(11)
    await claim(beacon)
    crew.time_passes(34)
    again = await claim(beacon)

    assert [(job.id, job.attempt) for job in again.jobs] == [(made.id, 2)]
    assert crew.story(made.id) == [
        *((None, "queued"), ("queued", "assigned"), ("assigned", "queued"), ("queued", "assigned"))
    ]


@pytest.mark.rule("R000-144", "R003-31")
async def test_a_job_that_somebody_else_is_working_on_is_passed_over(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    first, second = await crew.enqueue(), await crew.enqueue()
    async with await psycopg.AsyncConnection.connect(crew.fleet.administration) as other:
        await other.execute("select from jobs where id = %s for update", (first.id,))

        claimed = await claim(atlas)
        await other.rollback()

    assert [job.id for job in claimed.jobs] == [second.id]
    assert crew.status(first.id) == "queued"

"""Agents that wait are looked after together: nobody is overlooked, and waiting costs next to nothing."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import psycopg
import pytest

from agent_console.domain.ids import AgentId
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.domain.working import Claimed
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.queue import waiting
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import claim, until
from tests.queue.more_agents import AddedAgent, crowd
from tests.support.fleet import Fleet

LONG = 25.0
MANY = 20
LOOKS = 15


@pytest.fixture
async def deaf(quiet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Backend]:
    """A process that hears no notice and looks for all its agents often; they do not look for themselves."""
    monkeypatch.setattr(waiting, "LOOK_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(waiting, "ALONE_EVERY", 10_000)
    backend = Backend(quiet.working, listen_dsn="postgresql://127.0.0.1:1/nobody")
    yield backend
    await backend.close()


def waiting_for_one(backend: Backend, agent: AddedAgent, seconds: float = LONG) -> "asyncio.Task[Claimed]":
    return asyncio.create_task(claim(PostgresRepository(backend, by_token(agent.secret)), wait_seconds=seconds))


def who_waits(backend: Backend) -> int:
    return sum(len(agents) for agents in vars(backend.queue.waiting)["_waiting"].values())


def who_sleeps(backend: Backend) -> int:
    """Of those who wait: who is not just asking the database."""
    waiting_agents = vars(backend.queue.waiting)["_waiting"].values()
    return sum(bool(vars(woken.told)["_waiters"]) for agents in waiting_agents for woken in agents)


@pytest.mark.parametrize("bound", [False, True], ids=["anybody's", "bound"])
async def test_a_job_that_no_notice_told_of_is_found_for_who_waits(
    quiet: Fleet, deaf: Backend, bound: bool
) -> None:
    near, far = crowd(quiet, 2)
    both = [waiting_for_one(deaf, far), waiting_for_one(deaf, near)]
    await until(lambda: who_waits(deaf) == 2)
    began = monotonic()
    elsewhere = Backend(quiet.working)
    operator = PostgresRepository(elsewhere, by_name("example", "ole@example.com"))

    wanted: AgentId | None = near.id if bound else None
    made = await operator.call(JOBS_CREATE, NewJob(type="work", payload={}, bound_agent_id=wanted))
    (first,), (second,) = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

    assert [job.id for job in first.result().jobs] == [made.id]
    assert not bound or first is both[1]
    assert monotonic() - began < LONG / 2
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await elsewhere.close()


async def test_of_a_crowd_everybody_gets_one_of_as_many_jobs_without_waiting_for_the_next_look(
    quiet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "WOKEN_AT_ONCE", 2)
    monkeypatch.setattr(waiting, "LOOK_AGAIN_SECONDS", 10_000)
    backend = Backend(quiet.working)
    everybody = [waiting_for_one(backend, agent) for agent in crowd(quiet, MANY)]
    await until(lambda: who_sleeps(backend) == MANY)

    jobs = NewJobs(jobs=tuple(NewJob(type="work", payload={}) for _ in range(MANY)))
    await PostgresRepository(backend, by_name("example", "ole@example.com")).call(JOBS_CREATE_MANY, jobs)
    async with asyncio.timeout(LONG - 5):
        claimed = await asyncio.gather(*everybody)

    assert len({one.job.id for one in claimed if one.job is not None}) == MANY
    await backend.close()


async def test_many_who_wait_for_nothing_do_not_ask_again_and_again(quiet: Fleet, deaf: Backend) -> None:
    agents = crowd(quiet, MANY)
    # Each try of a claim locks its agent, and so it is a transaction with a number.
    last = "select pg_current_xact_id()::text::bigint"
    before = int(str(quiet.one(last)))

    claimed = await asyncio.gather(*(waiting_for_one(deaf, agent, LOOKS * 0.1) for agent in agents))

    assert not any(answer.jobs for answer in claimed)
    assert int(str(quiet.one(last))) - before < MANY * LOOKS // 2
    assert who_waits(deaf) == 0


async def test_who_goes_away_in_the_moment_of_being_woken_takes_no_job_along(quiet: Fleet) -> None:
    """A job claimed for nobody would be held until its lease is over."""
    (agent,) = crowd(quiet, 1)
    backend = Backend(quiet.working, listen_dsn="postgresql://127.0.0.1:1/nobody")
    elsewhere = Backend(quiet.working)
    gone = waiting_for_one(backend, agent)
    await until(lambda: who_sleeps(backend) == 1)
    operator = PostgresRepository(elsewhere, by_name("example", "ole@example.com"))
    made = await operator.call(JOBS_CREATE, NewJob(type="work", payload={}))

    backend.queue.waiting.came(quiet.team_id(), None)
    gone.cancel()
    await asyncio.wait({gone})

    assert gone.cancelled()
    assert quiet.one("select status from jobs where id = %s", made.id) == "queued"
    await backend.close()
    await elsewhere.close()


def test_what_is_bound_is_found_through_indexes(quiet: Fleet) -> None:
    facts = {"team_id": quiet.team_id(), "agents": [str(quiet.agent_id("atlas").hex)]}

    with psycopg.connect(quiet.administration) as connection:
        connection.execute("set local enable_seqscan = off")
        plan = "\n".join(row[0] for row in connection.execute(f"explain {waiting.BOUND}".encode(), facts))

    assert "lanes_bound_idx" in plan
    assert "jobs_claim_order_idx" in plan

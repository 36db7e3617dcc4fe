"""Behind PgBouncer in transaction mode everything works as before: agents, operators, live changes, duties, proof.

`dsn` leads to the pooler and `listen_dsn` to the database itself, as the operators' page says.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.domain.audit_proof import Verification
from agent_console.domain.errors import DatabaseUnavailable
from agent_console.domain.jobs import NewJob
from agent_console.domain.records import Nothing
from agent_console.domain.working import JobDone, JobProgress
from agent_console.repository.operations import JOBS_CREATE, ME
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.operations.working import JOBS_COMPLETE, JOBS_PROGRESS
from agent_console.repository.port import Topic
from agent_console.repository.postgres.duties.rounds import DUTIES, do_round
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.faults.pgbouncer import LOGIN, Pooler, pooling
from tests.queue.crew import EMPTY, take_running
from tests.queue.more_agents import crowd
from tests.support.clusters import Cluster
from tests.support.fleet import Fleet

AGENTS, JOBS = 12, 48
SESSIONS = 4
LOGIN_MADE = f"create role {LOGIN} login; grant agent_console_app to {LOGIN}"


@pytest.fixture(scope="module")
def pooler(postgres: Cluster) -> Iterator[Pooler]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as administration:
        administration.execute(LOGIN_MADE)
        with pooling(postgres, postgres.layout.folder / "pooler", sessions=SESSIONS) as running:
            yield running
        administration.execute(f"drop role {LOGIN}")


def name_of(fleet: Fleet) -> str:
    return str(fleet.one("select current_database()"))


def itself(fleet: Fleet) -> str:
    return make_conninfo(fleet.administration, user=LOGIN)


@pytest.fixture
async def backends(fleet: Fleet, pooler: Pooler) -> AsyncIterator[tuple[Backend, Backend]]:
    """Two servers, with more connections to the pooler than it has to the database."""
    fleet.execute(EMPTY)
    both = tuple(Backend(pooler.dsn(name_of(fleet)), listen_dsn=itself(fleet), pool_size=8) for _ in range(2))
    yield both[0], both[1]
    for backend in both:
        await backend.close()


async def test_two_servers_share_four_sessions_and_nothing_is_lost(
    fleet: Fleet, backends: tuple[Backend, Backend]
) -> None:
    agents = [
        PostgresRepository(backends[n % 2], by_token(agent.secret)) for n, agent in enumerate(crowd(fleet, AGENTS))
    ]
    operator = PostgresRepository(backends[0], by_name("example", "ole@example.com"))

    async def works(agent: PostgresRepository) -> None:
        for _ in range(JOBS // AGENTS):
            job = await take_running(agent)
            await agent.call(JOBS_PROGRESS, JobProgress(job_id=job.id, attempt=1, percentage=50))
            await agent.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=1, result={"by": str(job.id)}))

    new = NewJob(type="work", payload={})
    made = [job.id for job in await asyncio.gather(*(operator.call(JOBS_CREATE, new) for _ in range(JOBS)))]
    await asyncio.gather(*(works(agent) for agent in agents))

    ended = Counter(fleet.execute("select status, attempt from jobs"))
    kept = {row[0] for row in fleet.execute("select result ->> 'by' from job_results")}
    assert ended == {("succeeded", 1): JOBS}
    assert kept == {str(job) for job in made}
    sessions = f"select count(*) from pg_stat_activity where usename = '{LOGIN}' and datname = current_database()"
    assert fleet.one(sessions) in range(1, SESSIONS + 1)


async def test_live_changes_duties_and_the_proof_of_the_trail_work_too(
    fleet: Fleet, backends: tuple[Backend, Backend]
) -> None:
    """What needs a session of its own goes past the pooler; a duty's turn ends with its transaction."""
    ana = [PostgresRepository(backend, by_name("example", "ana@example.com")) for backend in backends]

    async with aclosing(ana[1].changes()) as changes, asyncio.timeout(30):
        first = await anext(changes)
        made = await ana[0].call(JOBS_CREATE, NewJob(type="work", payload={}))
        while (heard := await anext(changes)).id != str(made.id):
            continue
    failures = [(await do_round(duty, backend)).error for backend in backends for duty in DUTIES]
    proof = await ana[0].call(AUDIT_VERIFY, Verification())

    assert (first.topic, heard.topic) == (Topic.EVERYTHING, Topic.JOBS)
    assert failures == [None] * (2 * len(DUTIES))
    assert (proof.damage, proof.unsealed, proof.done > 0) == (None, 0, True)


async def test_without_the_databases_own_address_one_is_told_what_to_set(fleet: Fleet, pooler: Pooler) -> None:
    async with open_direct(pooler.dsn(name_of(fleet))) as repository:
        with pytest.raises(DatabaseUnavailable) as refused:
            await repository.call(ME, Nothing())

    assert "startup parameter" in refused.value.message
    assert "listen_dsn" in refused.value.hint

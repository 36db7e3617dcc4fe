"""A day in the life of the queue on every PostgreSQL that is supported."""

from collections.abc import Iterator

import pytest

from agent_console.database.migrate import migrate
from agent_console.domain.jobs import NewJob
from agent_console.domain.working import (
    ClaimWanted,
    EventLine,
    JobDone,
    JobFailed,
    JobLines,
    JobProgress,
    JobRenewal,
)
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.working import (
    JOBS_COMPLETE,
    JOBS_FAIL,
    JOBS_LOG,
    JOBS_PROGRESS,
    JOBS_RENEW,
)
from agent_console.repository.postgres.duties.queue import keep_counts, tend_jobs
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import EMPTY, claim, take, time_passes
from tests.queue.more_agents import crowd
from tests.queue.two_processes import TwoProcesses
from tests.support import example_fleet
from tests.support.clusters import Cluster, Version, available_versions, cluster, reachable_folder
from tests.support.fleet import AT, Fleet

# One worker runs them all, so that each version is started once.
pytestmark = pytest.mark.xdist_group("queue versions")


@pytest.fixture(scope="module", params=available_versions())
def supported(request: pytest.FixtureRequest, postgres: Cluster) -> Iterator[Fleet]:
    version: Version = request.param
    with reachable_folder() as folder:
        if version == postgres.version:
            yield _fleet(postgres)
            return
        with cluster(version, folder) as running:
            yield _fleet(running)


def _fleet(server: Cluster) -> Fleet:
    Fleet(server.dsn()).execute("create database queue_versions")
    fleet = Fleet(server.dsn("queue_versions"))
    migrate(fleet.administration)
    example_fleet.fill(fleet.administration, AT)
    fleet.execute(EMPTY)
    return fleet


async def test_jobs_are_taken_told_of_ended_lost_and_counted(supported: Fleet) -> None:
    agents = crowd(supported, 2)
    backend = Backend(supported.working)
    one, other = (PostgresRepository(backend, by_token(agent.secret)) for agent in agents)
    operator = PostgresRepository(backend, by_name("example", None))
    made = [
        (await operator.call(JOBS_CREATE, NewJob(type="work", payload={}, priority=priority))).id
        for priority in (1, 0, -1)
    ]

    first = await take(one, auto_start=True)
    await one.call(JOBS_PROGRESS, JobProgress(job_id=first.id, attempt=1, percentage=50))
    await one.call(JOBS_LOG, JobLines(job_id=first.id, attempt=1, events=(EventLine(message="hello"),)))
    await one.call(JOBS_RENEW, JobRenewal(job_id=first.id, attempt=1))
    done = JobDone(job_id=first.id, attempt=1, result={"a": 1}, claim_next=ClaimWanted(auto_start=True))
    second = (await one.call(JOBS_COMPLETE, done)).next
    third = await take(other, auto_start=True)
    nothing = await claim(other)
    failed = await one.call(JOBS_FAIL, JobFailed(job_id=made[1], attempt=1, error="x"))
    time_passes(supported, 121)
    tended = await tend_jobs(backend)
    time_passes(supported, 40)
    again = [await take(one), await take(other)]
    folded = await keep_counts(backend) or 0
    watching = TwoProcesses(supported, agents)
    counted = watching.counts_are_right()
    await watching.close()
    await backend.close()

    assert first.id == made[0]
    assert second is not None
    assert [job.id for job in second.jobs] == [made[1]]
    assert (third.id, nothing.reason, failed.status) == (made[2], "at_your_limit", "queued")
    assert tended == 2
    assert [(job.id, job.attempt) for job in again] == [(made[1], 2), (made[2], 2)]
    assert folded > 0
    assert counted
    assert backend.queue.book.page(supported.team_id()).crowded is False

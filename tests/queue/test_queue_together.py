"""The queue itself with many agents at once: first come, first served; a mistake stays its own."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import pytest

from agent_console.domain.errors import Conflict
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.working import ClaimWanted, Ended, EventLine, JobDone, JobLines, JobProgress
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.working import JOBS_COMPLETE, JOBS_LOG, JOBS_PROGRESS
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.queue.gathering import AT_MOST
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import Row, claim, take_running, until
from tests.queue.more_agents import AddedAgent, crowd
from tests.support.fleet import Fleet

CALLERS = 200
OF_A_MINUTE = 1_000


@pytest.fixture
async def backend(quiet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(quiet.working)
    yield backend
    await backend.close()


@pytest.fixture
def operator(backend: Backend) -> Repository:
    return PostgresRepository(backend, by_name("example", "ole@example.com"))


def callers(backend: Backend, agents: list[AddedAgent]) -> list[Repository]:
    return [PostgresRepository(backend, by_token(agent.secret)) for agent in agents]


ADD_JOBS = """
    with lane as (
        insert into lanes (team_id, id, key, job_type) values (%s, new_id(), repeat('a', 64), 'work')
        on conflict (team_id, key) do update set job_type = 'work' returning team_id, id)
    insert into jobs (team_id, id, lane_id, type, payload)
    select team_id, new_id(), id, 'work', '{}' from lane, generate_series(1, %s)
"""


async def test_whoever_asks_first_is_served_first(quiet: Fleet, backend: Backend) -> None:
    """As long as one statement can take them all."""
    agents = callers(backend, crowd(quiet, AT_MOST))
    await asyncio.gather(*(claim(agent) for agent in agents))
    quiet.execute(ADD_JOBS, quiet.team_id(), 30)
    backend.queue.book.forget(quiet.team_id())

    claimed = await asyncio.gather(*(claim(agent) for agent in agents))

    served = [place for place, each in enumerate(claimed) if each.jobs]
    assert served == list(range(30))
    in_order = [job.id for each in claimed for job in each.jobs]
    assert in_order == sorted(in_order, key=str)


async def test_of_two_hundred_who_wait_everybody_is_served_once(
    quiet: Fleet, backend: Backend, operator: Repository
) -> None:
    agents = callers(backend, crowd(quiet, CALLERS))
    waiting = [asyncio.create_task(claim(agent, wait_seconds=30)) for agent in agents]
    everybody = vars(backend.queue.waiting)["_waiting"]
    await until(lambda: len(everybody.get(quiet.team_id(), ())) == CALLERS)

    for _ in range(10):
        await operator.call(JOBS_CREATE, NewJob(type="work", payload={}))
    quiet.execute(ADD_JOBS, quiet.team_id(), CALLERS - 10)
    claimed = await asyncio.gather(*waiting)

    jobs = [job.id for each in claimed for job in each.jobs]
    assert len(jobs) == len(set(jobs)) == CALLERS
    assert not everybody


@pytest.mark.rule("U000-45")
async def test_nobody_gets_a_second_while_another_has_none(quiet: Fleet, backend: Backend) -> None:
    agents = callers(backend, crowd(quiet, 50, room=20))
    await asyncio.gather(*(claim(agent) for agent in agents))
    backend.queue.book.forget(quiet.team_id())
    quiet.execute(ADD_JOBS, quiet.team_id(), 60)

    claimed = await asyncio.gather(*(claim(agent, count=20) for agent in agents))

    counts = [len(each.jobs) for each in claimed]
    assert counts == [2] * 10 + [1] * 40


async def _works_on(agent: Repository) -> int:
    """Until there is nothing left; how many it has done."""
    done, (job, *_) = 0, (await claim(agent, auto_start=True)).jobs or (None,)
    while job is not None:
        wanted = JobDone(job_id=job.id, attempt=job.attempt, claim_next=ClaimWanted(auto_start=True))
        ended = await agent.call(JOBS_COMPLETE, wanted)
        done, job = done + 1, None if ended.next is None else ended.next.job
    return done


@pytest.mark.rule("U000-3", "U000-9")
async def test_a_hundred_agents_do_the_jobs_of_a_minute_in_less_and_together(
    quiet: Fleet, backend: Backend
) -> None:
    """That a job costs no more after an hour of this is told by what it reads, among many that have ended."""
    agents = callers(backend, crowd(quiet, 100))
    quiet.execute(ADD_JOBS, quiet.team_id(), OF_A_MINUTE)
    quiet.execute("analyze")
    before, began = _transactions(quiet), monotonic()

    done = await asyncio.gather(*(_works_on(agent) for agent in agents))

    assert monotonic() - began < 60
    assert (sum(done), quiet.execute("select distinct status from jobs")) == (OF_A_MINUTE, [("succeeded",)])
    assert _transactions(quiet) - before < OF_A_MINUTE // 4, "a hundred are more than one at a time"


async def test_one_poisoned_completion_among_a_hundred_fails_alone(quiet: Fleet, backend: Backend) -> None:
    agents = callers(backend, crowd(quiet, 100))
    quiet.execute(ADD_JOBS, quiet.team_id(), 100)
    jobs = [await take_running(agent) for agent in agents]
    poisoned = jobs[50].id
    quiet.execute(
        "insert into job_results (team_id, id, job_id, attempt, created_by_user_id)"
        " select team_id, new_id(), id, 1, updated_by_user_id from jobs where id = %s",
        poisoned,
    )

    async def completes(place: int) -> Ended:
        done = JobDone(job_id=jobs[place].id, attempt=1, result={"place": place})
        return await agents[place].call(JOBS_COMPLETE, done)

    answers = await asyncio.gather(*(completes(place) for place in range(100)), return_exceptions=True)

    failed = [place for place, answer in enumerate(answers) if isinstance(answer, BaseException)]
    assert failed == [50]
    assert isinstance(answers[50], Conflict)
    counted = quiet.execute("select status, count(*) from jobs group by status order by status")
    assert counted == [("running", 1), ("succeeded", 99)]


async def test_of_many_words_of_progress_the_last_stands_and_few_are_written(
    quiet: Fleet, backend: Backend
) -> None:
    (agent,) = callers(backend, crowd(quiet, 1))
    quiet.execute(ADD_JOBS, quiet.team_id(), 1)
    job = await take_running(agent)
    before = _transactions(quiet)

    said = [JobProgress(job_id=job.id, attempt=1, percentage=number) for number in range(100)]
    answers = await asyncio.gather(*(agent.call(JOBS_PROGRESS, word) for word in said))

    assert quiet.one("select progress from jobs") == {"percentage": 99}
    assert {answer.status.value for answer in answers} == {"running"}
    assert _transactions(quiet) - before < 30


def _transactions(fleet: Fleet) -> int:
    return int(str(fleet.one("select pg_current_xact_id()::text::bigint")))


async def test_the_lines_of_one_job_keep_their_order_however_many_call(quiet: Fleet, backend: Backend) -> None:
    (agent,) = callers(backend, crowd(quiet, 1))
    quiet.execute(ADD_JOBS, quiet.team_id(), 1)
    job = await take_running(agent)

    def line(number: int) -> JobLines:
        return JobLines(job_id=job.id, attempt=1, events=(EventLine(message=f"{number}"),))

    await asyncio.gather(*(agent.call(JOBS_LOG, line(number)) for number in range(50)))

    told = [row["message"] for row in _lines(quiet, job.id)]
    assert told == [f"{number}" for number in range(50)]


def _lines(fleet: Fleet, job_id: JobId) -> list[Row]:
    asked = "select message from job_events where job_id = %s and payload is null order by seq"
    return [{"message": message} for (message,) in fleet.execute(asked, job_id)]

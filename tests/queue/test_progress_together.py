"""What an agent says of its progress while an earlier word is still being written: its own last word counts."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from agent_console.domain.errors import Conflict
from agent_console.domain.ids import JobId
from agent_console.domain.working import JobProgress, Reported
from agent_console.repository.operations.working import JOBS_PROGRESS
from agent_console.repository.port import Change, Repository, Topic
from agent_console.repository.postgres.queue.held_jobs import Report
from tests.queue.crew import Crew, take_running, until

WRITING = """
    select count(*) from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%%jsonb_to_recordset%%'
"""
WRITTEN = """
    create table written (place serial, stage text);
    create function write_down() returns trigger language plpgsql security definer as
    $$ begin insert into written (stage) values (new.progress ->> 'stage'); return null; end $$;
    create trigger write_down after update of progress on jobs for each row execute function write_down();
"""


def saying(agent: Repository, job_id: JobId, stage: str, attempt: int = 1) -> "asyncio.Task[Reported]":
    async def say() -> Reported:
        return await agent.call(JOBS_PROGRESS, JobProgress(job_id=job_id, attempt=attempt, stage=stage))

    return asyncio.create_task(say())


@asynccontextmanager
async def one_word_being_written(crew: Crew, agent: Repository, job_id: JobId) -> AsyncIterator[None]:
    """Within the block the job is held by somebody, and so is the statement with the agent's first word."""
    with psycopg.connect(crew.fleet.administration) as somebody:
        somebody.execute("select from jobs where id = %s for update", (job_id,))
        first = saying(agent, job_id, "first")
        await until(lambda: crew.fleet.one(WRITING) == 1)
        yield
    await first


def stage_of(crew: Crew, job_id: JobId) -> object:
    progress = crew.row(job_id)["progress"]
    return progress["stage"] if isinstance(progress, dict) else None


def nothing_is_kept() -> bool:
    gc.collect()
    return not any(isinstance(one, Report) for one in gc.get_objects())


async def let_them_speak() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_of_many_words_the_last_is_written_and_the_others_are_spared(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take_running(atlas)
    direct_crew.fleet.execute(WRITTEN)

    async with one_word_being_written(direct_crew, atlas, made.id):
        later = [saying(atlas, made.id, f"{number}") for number in range(2, 9)]
        await let_them_speak()
    answers = await asyncio.gather(*later)

    assert stage_of(direct_crew, made.id) == "8"
    assert {answer.job_id for answer in answers} == {made.id}
    assert direct_crew.fleet.execute("select stage from written order by place") == [("first",), ("8",)]


@pytest.mark.parametrize(
    ("who", "attempt"), [("beacon", 1), ("atlas", 2)], ids=["another agent", "another attempt"]
)
async def test_nobody_elses_word_is_written_in_the_name_of_who_holds_the_job(
    direct_crew: Crew, who: str, attempt: int
) -> None:
    agents = {name: await direct_crew.agent(name) for name in ("atlas", "beacon")}
    made = await direct_crew.enqueue()
    await take_running(agents["atlas"])

    async with one_word_being_written(direct_crew, agents["atlas"], made.id):
        second = saying(agents["atlas"], made.id, "second")
        await let_them_speak()
        forged = saying(agents[who], made.id, "forged", attempt)
        await let_them_speak()

    await second
    with pytest.raises(Conflict) as refused:
        await forged
    assert refused.value.code == "not_owner"
    assert stage_of(direct_crew, made.id) == "second"


async def test_everybody_hears_of_what_was_written_and_nothing_is_kept_of_it(direct_crew: Crew) -> None:
    atlas, beacon = await direct_crew.agent("atlas"), await direct_crew.agent("beacon")
    made = await direct_crew.enqueue()
    await take_running(atlas)
    changes = direct_crew.operator.changes()
    await anext(changes)

    with pytest.raises(Conflict):
        await saying(beacon, made.id, "not mine")
    await saying(atlas, made.id, "scanning")

    async with asyncio.timeout(60):
        while (change := await anext(changes)).topic is not Topic.JOBS:
            pass
    assert change == Change(topic=Topic.JOBS, id=str(made.id))
    await changes.aclose()
    await until(nothing_is_kept)


async def test_a_word_that_was_lost_after_its_speaker_left_troubles_nobody(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take_running(atlas)
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))

    with psycopg.connect(direct_crew.fleet.administration) as somebody:
        somebody.execute("select from jobs where id = %s for update", (made.id,))
        leaving = saying(atlas, made.id, "lost")
        await until(lambda: direct_crew.fleet.one(WRITING) == 1)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        del leaving
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'"
        direct_crew.fleet.execute(f"{ended} and datname = current_database()")
        await until(nothing_is_kept)

    assert troubles == []

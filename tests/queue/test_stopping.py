"""Who still waits for the database when the program stops is told so, and the program does stop."""

import asyncio

import psycopg
import pytest

from agent_console.domain.errors import TimedOut
from agent_console.domain.working import JobRenewal
from agent_console.repository.operations.working import JOBS_RENEW
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.conftest import OPERATOR
from tests.queue.crew import Crew, claim, key_of, take
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock


@pytest.mark.parametrize("reports", [True, False], ids=["a report", "a turn"])
async def test_who_still_waits_when_the_program_stops_is_told(quiet: Fleet, reports: bool) -> None:
    backend = Backend(quiet.working)

    async def unused(_: object) -> PostgresRepository:
        raise NotImplementedError

    crew = Crew(quiet, PostgresRepository(backend, by_name("example", OPERATOR)), unused)
    atlas = PostgresRepository(backend, by_token(key_of(quiet, "atlas")))
    await crew.enqueue()
    held = await take(atlas)

    with psycopg.connect(quiet.administration) as changing:
        if reports:
            changing.execute("select from jobs where id = %s for update", (held.id,))
            waiting = asyncio.create_task(_renew(atlas, JobRenewal(job_id=held.id, attempt=1)))
        else:
            changing.execute("select from agents where name = 'atlas' for update")
            waiting = asyncio.create_task(_claim(atlas))
        await somebody_waits_for_a_lock(quiet, task=waiting)
        await backend.close()

        with pytest.raises(TimedOut, match="stopping"):
            async with asyncio.timeout(30):
                await waiting


async def _renew(atlas: PostgresRepository, renewal: JobRenewal) -> object:
    return await atlas.call(JOBS_RENEW, renewal)


async def _claim(atlas: PostgresRepository) -> object:
    return await claim(atlas)

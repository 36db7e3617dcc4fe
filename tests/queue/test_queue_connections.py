"""The queue's connections: whoever goes away, at whatever moment, leaves them to the others."""

import asyncio
import random

import psycopg
import pytest

from agent_console.domain.errors import DatabaseUnavailable
from agent_console.repository.postgres.queue import connections as queue_connections
from agent_console.repository.postgres.repository import Backend
from tests.queue.crew import until
from tests.support.fleet import Fleet

AT_MOST = 6
IMPATIENT = 150
BEHIND = "select pg_advisory_lock_shared(%(gate)s), pg_advisory_unlock_shared(%(gate)s)"


async def asked(backend: Backend, seconds: float = 0.0) -> object:
    (row,) = await backend.connections.rows("select pg_sleep(%(seconds)s), 1 as one", {"seconds": seconds})
    return row.one


async def test_callers_that_leave_at_any_moment_take_no_connection_with_them(fleet: Fleet) -> None:
    backend = Backend(fleet.working)
    chance = random.Random(7)

    async def impatient() -> None:
        asking = asyncio.create_task(asked(backend, chance.random() * 0.01))
        await asyncio.sleep(chance.random() * 0.02)
        asking.cancel()
        # A second time, as a deadline does that strikes while somebody leaves.
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    await asyncio.gather(*(impatient() for _ in range(IMPATIENT)))
    together = await asyncio.gather(*(asked(backend, 0.05) for _ in range(2 * AT_MOST)))
    sessions = "select count(*) from pg_stat_activity where query like '%%pg_sleep%%' and pid <> pg_backend_pid()"

    assert together == [1] * 2 * AT_MOST
    assert int(str(fleet.one(sessions))) <= AT_MOST
    await backend.close()


async def test_who_waits_too_long_for_a_connection_is_told_and_the_next_is_served(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_connections, "WAIT_SECONDS", 0.05)
    backend = Backend(fleet.working)
    waiting = "select count(*) from pg_stat_activity where wait_event = 'advisory'"
    gate = {"gate": 4711}
    with psycopg.connect(fleet.administration, autocommit=True) as gatekeeper:
        gatekeeper.execute("select pg_advisory_lock(%(gate)s)", gate)
        held = [asyncio.create_task(backend.connections.rows(BEHIND, gate)) for _ in range(AT_MOST)]
        await until(lambda: fleet.one(waiting) == AT_MOST)

        with pytest.raises(DatabaseUnavailable):
            await asked(backend)

        gatekeeper.execute("select pg_advisory_unlock(%(gate)s)", gate)
        assert len(await asyncio.gather(*held)) == AT_MOST
    assert await asked(backend) == 1
    await backend.close()


async def test_one_connection_that_was_cut_is_the_last_mistake_of_a_restart(fleet: Fleet) -> None:
    backend = Backend(fleet.working)
    await asyncio.gather(*(asked(backend, 0.2) for _ in range(AT_MOST)))
    fleet.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where query like '%%pg_sleep%%' and pid <> pg_backend_pid()"
    )

    answers = [
        answer
        for _ in range(2 * AT_MOST)
        for answer in await asyncio.gather(asked(backend), return_exceptions=True)
    ]

    assert isinstance(answers[0], DatabaseUnavailable)
    assert answers[1:] == [1] * (2 * AT_MOST - 1)
    await backend.close()

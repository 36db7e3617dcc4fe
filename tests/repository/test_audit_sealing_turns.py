"""Whose turn it is to seal: what a round does when another process is at it, and what it need not look at."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock
from tests.support.trail import act, seal

TURN = "select pg_advisory_lock(hashtext('agent_console.duties'), hashtext('seals'))"


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@contextmanager
def another_at_it(fleet: Fleet) -> Iterator[None]:
    """Meanwhile whoever has something to seal finds that it is not their turn; who has nothing does not ask."""
    with psycopg.connect(fleet.administration) as another:
        another.execute(TURN)
        yield


async def sealing(backend: Backend) -> int | None:
    return await SEAL_ACTS.round(backend)


async def the_turn_is_lost(fleet: Fleet, backend: Backend) -> int | None:
    """What a round says that was begun, and whose turn was taken by another process after its first step."""
    async with (
        await psycopg.AsyncConnection.connect(fleet.administration) as holding,
        await psycopg.AsyncConnection.connect(fleet.administration) as another,
    ):
        await holding.execute("select from audit_heads for update")
        round_begun = asyncio.create_task(sealing(backend))
        await somebody_waits_for_a_lock(fleet, task=round_begun)
        taken = asyncio.create_task(another.execute(TURN))
        await somebody_waits_for_a_lock(fleet, 2, task=round_begun)
        await holding.commit()
        await taken
        return await round_begun


async def test_a_round_says_whether_another_process_was_at_it(fleet: Fleet, backend: Backend) -> None:
    act(fleet)

    with another_at_it(fleet):
        meanwhile = await SEAL_ACTS.round(backend)

    assert (meanwhile, await SEAL_ACTS.round(backend)) == (None, 1)


async def test_what_was_sealed_counts_when_the_turn_is_lost_before_the_next_team(
    fleet: Fleet, backend: Backend
) -> None:
    for team_id in (fleet.team_id(), fleet.add_team("other")):
        act(fleet, team_id=team_id)
        seal(fleet, team_id)
        for _ in range(3):
            act(fleet, team_id=team_id)

    assert await the_turn_is_lost(fleet, backend) == 3
    assert await SEAL_ACTS.round(backend) == 3


async def test_what_was_sealed_counts_when_the_turn_is_lost_within_a_team(
    fleet: Fleet, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.audit.sealing.BATCH", 2)
    act(fleet)
    seal(fleet)
    for _ in range(5):
        act(fleet)

    assert await the_turn_is_lost(fleet, backend) == 2
    assert await SEAL_ACTS.round(backend) == 3


async def test_everybody_in_the_team_is_told_that_acts_were_sealed(fleet: Fleet, backend: Backend) -> None:
    changes = PostgresRepository(backend, by_name("example", None)).changes()
    assert await anext(changes) == REFETCH
    act(fleet)

    await SEAL_ACTS.round(backend)

    async with asyncio.timeout(60):
        assert await anext(changes) == Change(topic=Topic.AUDIT)
    await changes.aclose()


async def test_where_nothing_is_to_be_sealed_nobody_asks_for_the_turn(fleet: Fleet, backend: Backend) -> None:
    """Two teams, one sealed up to an earlier transaction than the other, and a third that never did anything."""
    fleet.add_team("idle")
    for team_id in (fleet.team_id(), fleet.add_team("other")):
        act(fleet, team_id=team_id)
        seal(fleet, team_id)

    with another_at_it(fleet):
        assert await SEAL_ACTS.round(backend) == 0


async def test_what_an_older_transaction_may_still_come_before_is_not_yet_to_be_sealed(
    fleet: Fleet, backend: Backend
) -> None:
    with psycopg.connect(fleet.administration) as slow:
        slow.execute("select pg_current_xact_id()")
        act(fleet)

        with another_at_it(fleet):
            assert await SEAL_ACTS.round(backend) == 0

    assert await SEAL_ACTS.round(backend) == 1

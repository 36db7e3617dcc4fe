"""How the duties go, for everybody who may see the fleet: what each does, who did it last, what went wrong."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from agent_console.domain.duties import DUTY_RULES, DutyState
from agent_console.domain.errors import ConsoleError, TimedOut
from agent_console.domain.records import Nothing
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.declared import Duty
from agent_console.repository.postgres.duties.records import DutyRecord, Round, this_process, write_down
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.repository.conftest import VIEWER, OpenRepository
from tests.support.fleet import Fleet

# A server that is asked does the duties too; what lies ahead is newer than all it can write.
ELSEWHERE = """
    insert into duty_rounds (duty, done_at, done_by, seconds, rounds, rows, failures, failed_at, error)
    values ('rest', now() + interval '1 day', 'elsewhere:7', 0.25, 1000000, 2000000, 3000000,
            now() + interval '2 days', 'no space left')
"""


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


async def states_of(repository: Repository) -> dict[str, DutyState]:
    return {state.name: state for state in (await repository.call(DUTIES_LIST, Nothing())).items}


async def state_of(backend: Backend, name: str) -> DutyState:
    return (await states_of(PostgresRepository(backend, by_name("example", None))))[name]


async def test_every_duty_is_listed_with_what_it_does(open_repository: OpenRepository) -> None:
    states = await states_of(await open_repository(VIEWER))

    assert [(state.name, state.does, state.every_seconds) for state in states.values()] == [
        (rule.name, rule.does, rule.every_seconds) for rule in DUTY_RULES
    ]


async def test_what_any_process_wrote_is_told(repository: Repository, fleet: Fleet) -> None:
    fleet.execute(ELSEWHERE)

    state = (await states_of(repository))["rest"]

    assert (state.done_by, state.seconds, state.error) == ("elsewhere:7", 0.25, "no space left")
    assert (state.late, state.failing) == (False, True)
    assert (state.rounds // 1_000_000, state.rows // 1_000_000, state.failures // 1_000_000) == (1, 2, 3)
    assert state.done_at is not None
    assert state.failed_at is not None
    assert state.done_at < state.failed_at


async def done_once(backend: Backend, rows: int | ConsoleError) -> None:
    """A process that does the duty `rest` once and leaves again."""
    tried = asyncio.Event()

    async def round(_: Backend) -> int:
        tried.set()
        if isinstance(rows, ConsoleError):
            raise rows
        return rows

    async with duties_done(backend, [Duty("rest", 3600.0, round)]):
        await tried.wait()


async def test_who_does_a_duty_is_written_down_though_it_stays_for_a_moment_only(backend: Backend) -> None:
    await done_once(backend, 3)

    state = await state_of(backend, "rest")

    assert (state.done_by, state.rounds, state.rows, state.failures) == (this_process(), 1, 3, 0)
    assert (state.late, state.failing, state.error) == (False, False, None)
    assert this_process().endswith(f":{os.getpid()}")


async def test_a_failure_is_written_down_without_its_secrets_and_is_no_sign_that_it_is_done(
    backend: Backend,
) -> None:
    await done_once(backend, TimedOut("The database took too long; password=hunter2 was tried."))

    state = await state_of(backend, "rest")

    assert (state.done_at, state.done_by, state.failures) == (None, None, 1)
    assert (state.late, state.failing) == (True, True)
    assert state.error is not None
    assert state.error.startswith("TimedOut: The database took too long")
    assert "hunter2" not in state.error


@pytest.mark.parametrize(
    ("name", "seconds", "late"), [("jobs", 20, False), ("jobs", 40, True), ("history", 120, False)]
)
async def test_a_duty_is_late_after_three_rounds_and_half_a_minute(
    backend: Backend, fleet: Fleet, name: str, seconds: int, late: bool
) -> None:
    fleet.execute(
        "insert into duty_rounds (duty, done_at, done_by, seconds)"
        " values (%s, now() - %s * interval '1 second', 'elsewhere:7', 0.1)",
        *(name, seconds),
    )

    assert (await state_of(backend, name)).late is late


async def test_a_duty_that_was_never_done_is_late(backend: Backend) -> None:
    state = await state_of(backend, "approvals")

    assert (state.late, state.done_at, state.rounds) == (True, None, 0)


async def test_what_was_written_is_not_written_again_and_the_newest_round_counts(
    backend: Backend, fleet: Fleet
) -> None:
    """Two processes add to one row; nothing new costs nothing."""
    fleet.execute(ELSEWHERE)
    earlier = Round(datetime.now(UTC), 0.1, 5, None)
    records = {"rest": DutyRecord(rounds=2, rows=5, last_done=earlier)}
    written = await write_down(backend, records, {"rest": DutyRecord()})

    before = fleet.one("select xmin from duty_rounds")
    await write_down(backend, records, written)
    unchanged = fleet.one("select xmin from duty_rounds") == before
    state = await state_of(backend, "rest")

    assert unchanged
    assert (state.rounds, state.rows, state.failures) == (1_000_002, 2_000_005, 3_000_000)
    assert (state.done_by, state.seconds, state.error) == ("elsewhere:7", 0.25, "no space left")

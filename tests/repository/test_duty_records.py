"""Duties are done side by side, each at its own pace, and what becomes of them is on record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import pytest

from agent_console.domain.duties import DUTY_RULES
from agent_console.domain.errors import TimedOut
from agent_console.repository.postgres.duties.declared import Duty
from agent_console.repository.postgres.duties.records import DutyRecord
from agent_console.repository.postgres.duties.rounds import DUTIES, duties_done
from agent_console.repository.postgres.repository import Backend

SELDOM = 3600.0
PATIENCE = 30.0


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """One that no duty of these tests asks for anything."""
    backend = Backend("postgresql://nobody@127.0.0.1:1/nowhere")
    yield backend
    await backend.close()


async def until(holds: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not holds():
        assert loop.time() - begun < PATIENCE
        await asyncio.sleep(0.005)


async def three_rows(_: Backend) -> int:
    return 3


async def refused(_: Backend) -> int:
    raise TimedOut("The database took too long.")


async def broken(_: Backend) -> int:
    done: dict[str, int] = {}
    return done["rows"]


async def endless(_: Backend) -> int:
    await asyncio.Event().wait()
    return 0


async def test_a_record_tells_when_the_last_round_was_and_what_it_did(backend: Backend) -> None:
    before = datetime.now(UTC)

    async with duties_done(backend, [Duty("reap", 0.001, three_rows)]) as records:
        await until(lambda: records["reap"].rounds >= 4)
    record = records["reap"]

    assert record.last_done is not None
    assert before <= record.last_done.ended_at <= datetime.now(UTC)
    assert record.last_done.seconds >= 0
    assert (record.last_done.rows, record.last_done.error) == (3, None)
    assert (record.rows, record.failures, record.last_error) == (3 * record.rounds, 0, None)


async def test_each_duty_keeps_its_own_pace(backend: Backend) -> None:
    duties = [Duty("often", 0.001, three_rows), Duty("seldom", SELDOM, three_rows)]

    async with duties_done(backend, duties) as records:
        await until(lambda: records["often"].rounds >= 20 and records["seldom"].rounds > 0)

    assert records["seldom"].rounds == 1


@pytest.mark.parametrize(
    ("going_wrong", "told"),
    [(refused, "TimedOut: The database took too long."), (broken, "KeyError: 'rows'")],
)
async def test_a_duty_that_fails_is_tried_again_and_stops_nobody(
    backend: Backend, going_wrong: Callable[[Backend], Awaitable[int]], told: str
) -> None:
    duties = [Duty("bad", 0.001, going_wrong), Duty("good", 0.001, three_rows)]

    async with duties_done(backend, duties) as records:
        await until(lambda: records["bad"].failures >= 3 and records["good"].rounds >= 3)

    assert records["bad"].last_error == told
    assert records["bad"].failures == records["bad"].rounds
    assert records["good"].failures == 0


async def test_a_duty_that_never_ends_holds_up_nobody_and_ends_with_the_process(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.duties.rounds.STOP_SECONDS", 0.01)
    duties = [Duty("stuck", 0.001, endless), Duty("good", 0.001, three_rows)]

    async with duties_done(backend, duties) as records:
        await until(lambda: records["good"].rounds >= 3)

    assert records["stuck"] == DutyRecord()
    assert not [task for task in asyncio.all_tasks() if "run_duty" in repr(task)]


async def test_an_error_is_remembered_after_the_duty_went_well_again(backend: Backend) -> None:
    rounds = iter([refused, three_rows])

    async def first_bad_then_good(backend: Backend) -> int:
        return await next(rounds, three_rows)(backend)

    async with duties_done(backend, [Duty("flaky", 0.001, first_bad_then_good)]) as records:
        await until(lambda: records["flaky"].rounds >= 3)
    record = records["flaky"]

    assert record.last_done is not None
    assert (record.failures, record.last_error) == (1, "TimedOut: The database took too long.")


async def test_a_round_that_another_process_is_at_is_none_of_this_one(backend: Backend) -> None:
    async def another_is_at_it(_: Backend) -> int | None:
        return None

    async with duties_done(backend, [Duty("busy", 0.001, another_is_at_it)]) as records:
        await until(lambda: records["busy"].passed_over >= 3)

    assert (records["busy"].rounds, records["busy"].last_done) == (0, None)


def test_no_two_duties_share_a_name_and_all_of_them_are_shown() -> None:
    names = [duty.name for duty in DUTIES]

    assert len(set(names)) == len(names), "they would share their turn and their record"
    assert {(duty.name, duty.every_seconds) for duty in DUTIES} == {
        (rule.name, rule.every_seconds) for rule in DUTY_RULES
    }

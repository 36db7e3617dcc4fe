"""What a doctor asks the other end, through the port and nothing else."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from time import perf_counter
from typing import Protocol, TypeVar

from agent_console.domain.doctor_facts import FarFacts
from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME, Answered, Asked, Operation
from agent_console.repository.operations.audit_trail import AUDIT_SEAL_STATUS
from agent_console.repository.operations.database import DATABASE_STATE
from agent_console.repository.operations.duties import DUTIES_LIST

ROUND_TRIPS = 5

Told = TypeVar("Told")


class Asks(Protocol):
    """A repository, or whatever stands before one."""

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered: ...


async def examined(
    asks: Asks, clock: Callable[[], datetime], seconds: Callable[[], float] = perf_counter
) -> FarFacts:
    """Whoever does not answer at all is told as a problem; what alone is refused is left out, with the reason."""
    try:
        me = await asks.call(ME, Nothing())
        round_trips = [await _timed(asks, seconds) for _ in range(ROUND_TRIPS)]
    except ConsoleError as error:
        return FarFacts(problem=error.message, hint=error.hint)
    refused: list[tuple[str, str]] = []

    async def told(what: str, answer: Awaitable[Told]) -> Told | None:
        try:
            return await answer
        except ConsoleError as error:
            refused.append((what, error.message))
            return None

    asked_at = clock()
    state = await told("database", asks.call(DATABASE_STATE, Nothing()))
    answered_at = clock()
    seal = await told("seals", asks.call(AUDIT_SEAL_STATUS, Nothing()))
    duties = await told("duties", asks.call(DUTIES_LIST, Nothing()))
    # The database looked at its clock somewhere between question and answer.
    middle = asked_at + (answered_at - asked_at) / 2
    return FarFacts(
        me=me,
        round_trips=tuple(round_trips),
        skew_seconds=None if state is None else (state.at - middle).total_seconds(),
        database=state,
        seal=seal,
        duties=None if duties is None else duties.items,
        refused=tuple(refused),
    )


async def _timed(asks: Asks, seconds: Callable[[], float]) -> float:
    begun = seconds()
    await asks.call(ME, Nothing())
    return seconds() - begun

"""Refusals that the audit trail keeps, though what was asked is undone: their row has a transaction of its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import JSONValue, RateLimited
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.work import Handler, Work, answers

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository


class ToldRefusal(RateLimited):
    """Too much at once, and worth a row in the audit trail."""

    def __init__(self, message: str, event: AuditEvent, *, hint: str, details: dict[str, JSONValue]) -> None:
        super().__init__(message, hint=hint, details=details)
        self.event = event


def answers_and_tells_refusals(
    operation: Operation[Asked, Answered],
) -> Callable[[Handler[Asked, Answered]], Handler[Asked, Answered]]:
    """Mark the function that answers an operation, and see to it that a ToldRefusal it raises is written down."""

    def register(handler: Handler[Asked, Answered]) -> Handler[Asked, Answered]:
        @answers_at_own_pace(operation)
        async def answering(repository: "PostgresRepository", request: Asked) -> Answered:
            return await telling_refusals(repository, operation, handler, request)

        return answers(operation)(handler)

    return register


async def telling_refusals(
    repository: "PostgresRepository",
    operation: Operation[Asked, Any],
    handler: Handler[Asked, Answered],
    request: Asked,
) -> Answered:
    try:
        return await repository.in_one_transaction(operation, handler, request)
    except ToldRefusal as refusal:
        await repository.backend.database.within_time(_tell(repository, refusal.event))
        raise


async def _tell(repository: "PostgresRepository", event: AuditEvent) -> None:
    async with repository.backend.database.changing() as connection:
        work = Work(connection, await repository.identify(connection), repository.place)
        at = await transaction_time(connection)
        await audit.append(work, event, at)

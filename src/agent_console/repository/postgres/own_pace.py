"""Operations that are not one transaction of their own: those that wait, and those that are done together."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from agent_console.domain.records import Request
from agent_console.repository.operations import AnyOperation, Operation

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered", bound=BaseModel)

OwnPace = Callable[["PostgresRepository", Asked], Awaitable[Answered]]

AT_OWN_PACE: dict[str, OwnPace[Any, Any]] = {}


def answers_at_own_pace(
    operation: Operation[Asked, Answered],
) -> Callable[[OwnPace[Asked, Answered]], OwnPace[Asked, Answered]]:
    """Mark the function that answers an operation and sees to its own transactions."""

    def register(answering: OwnPace[Asked, Answered]) -> OwnPace[Asked, Answered]:
        AT_OWN_PACE[operation.name] = answering
        return answering

    return register


def own_pace_of(operation: AnyOperation) -> OwnPace[Any, Any] | None:
    return AT_OWN_PACE.get(operation.name)

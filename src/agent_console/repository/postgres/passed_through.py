"""Answers that PostgreSQL itself puts into JSON, and that are passed through to a reader over HTTP as they are.

Each is another way to what its operation answers anyway, byte for byte the same to whoever reads JSON, and it only
has to serve the usual case: whatever it leaves alone goes the whole way.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from agent_console.domain.records import Request
from agent_console.repository.operations import AnyOperation, Operation

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered", bound=BaseModel)

AsJson = Callable[["PostgresRepository", Asked], Awaitable[bytes | None]]

AS_JSON: dict[str, AsJson[Any]] = {}


def answers_as_json(operation: Operation[Asked, Answered]) -> Callable[[AsJson[Asked]], AsJson[Asked]]:
    """Mark the function that may answer an operation in JSON; None from it means: not this time."""

    def register(answering: AsJson[Asked]) -> AsJson[Asked]:
        AS_JSON[operation.name] = answering
        return answering

    return register


def as_json_of(operation: AnyOperation) -> AsJson[Any] | None:
    return AS_JSON.get(operation.name)

"""What a handler works with, and the table in which it is entered under its operation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit import NOWHERE, Place
from agent_console.domain.errors import Unauthorized
from agent_console.domain.identity import Caller
from agent_console.domain.ids import AgentId, Id, ThreadId
from agent_console.domain.records import Request
from agent_console.repository.operations import Operation
from agent_console.repository.port import Topic
from agent_console.repository.postgres.live.notices import Notice

Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered", bound=BaseModel)


@dataclass
class Work:
    """One call: its connection (a transaction when the operation changes something) and its caller.

    A public operation begins without a caller; its handler finds out whose it is, and says so with `act_as`.
    """

    connection: AsyncConnection
    identified: Caller | None
    place: Place = NOWHERE
    notices: list[Notice] = field(default_factory=list)

    @property
    def caller(self) -> Caller:
        if self.identified is None:
            raise no_credential()
        return self.identified

    def act_as(self, caller: Caller) -> None:
        self.identified = caller

    def announce(
        self, topic: Topic, row: Id, *, thread_id: ThreadId | None = None, agent_id: AgentId | None = None
    ) -> None:
        """Tell the readers of live changes, once this transaction has been committed.

        What belongs to a thread names it, since only its readers may hear of it; what an agent asked for names
        the agent, which hears of its own.
        """
        self.notices.append(Notice.of(topic, row, thread_id=thread_id, agent_id=agent_id))


def no_credential() -> Unauthorized:
    return Unauthorized(
        "This needs a credential.", hint="Send one as Authorization: Bearer, or set a token in your profile."
    )


Handler = Callable[[Work, Asked], Awaitable[Answered]]

HANDLERS: dict[str, Handler[Any, Any]] = {}


def answers(
    operation: Operation[Asked, Answered],
) -> Callable[[Handler[Asked, Answered]], Handler[Asked, Answered]]:
    """Mark the function that answers an operation."""

    def register(handler: Handler[Asked, Answered]) -> Handler[Asked, Answered]:
        HANDLERS[operation.name] = handler
        return handler

    return register

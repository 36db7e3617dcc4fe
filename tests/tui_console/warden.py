"""The real other side, but it refuses what a test names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent_console.domain.errors import Forbidden
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Repository
from tests.tui_console.route_stage import Ear, Overheard
from tests.tui_console.stage import Say

NOT_YOURS = "That is not for you."


@dataclass
class Refusing(Overheard):
    """The real other side, but it refuses what is named."""

    refused: set[str] = field(default_factory=set)

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await super().call(operation, request)
        if operation.name in self.refused:
            raise Forbidden(NOT_YOURS)
        return answer


@dataclass
class Warden(Ear):
    """Listens, and decides what is refused."""

    refused: set[str] = field(default_factory=set)

    @asynccontextmanager
    async def __call__(self, say: Say) -> AsyncIterator[Repository]:
        async with self.opening(say) as side:
            yield Refusing(side, self.asked, self.refused)

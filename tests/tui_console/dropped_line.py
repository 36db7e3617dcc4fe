"""A line that drops once, or is slow, after something was done and before its answer comes back."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from agent_console.domain.errors import CannotConnect
from agent_console.repository.operations import Answered, AnyOperation, Asked, Operation
from agent_console.repository.port import Change, Repository
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.link import Opening
from tests.support.fleet import Fleet
from tests.tui_console.stage import ADMIN, Say


@dataclass
class DroppedLine:
    """The way to the real repository."""

    behind: Repository
    drops_at: str
    has_dropped: bool = False

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await self.behind.call(operation, request)
        if operation.name == self.drops_at and not self.has_dropped:
            self.has_dropped = True
            raise CannotConnect("The line dropped.")
        return answer

    def changes(self) -> AsyncGenerator[Change, None]:
        return self.behind.changes()

    async def close(self) -> None:
        await self.behind.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@dataclass
class HeldLine(DroppedLine):
    """The answer comes when it is let through."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    let_through: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await self.behind.call(operation, request)
        if operation.name == self.drops_at:
            self.done.set()
            await self.let_through.wait()
        return answer


def over_a_dropped_line(fleet: Fleet, drops_at: AnyOperation) -> Opening:
    @asynccontextmanager
    async def opening(say: Say) -> AsyncIterator[Repository]:
        async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
            yield DroppedLine(repository, drops_at.name)

    return opening

"""The other side of a link, doing as the test says: a repository, and openings that lead to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from agent_console import __version__
from agent_console.domain.errors import ConsoleError, TimedOut
from agent_console.domain.identity import AuthSource, Myself
from agent_console.domain.ids import TeamId, UserId
from agent_console.domain.permissions import Role
from agent_console.repository.operations import ME, Answered, Asked, Operation
from agent_console.repository.port import REFETCH, Change, Repository
from agent_console.tui.link import Link, LinkStatus
from tests.support.fleet import AT
from tests.tui_console.stage import Say

MYSELF = Myself(
    team_id=TeamId(int=1),
    team="example",
    user_id=UserId(int=2),
    name="Ana Costa",
    role=Role.ADMIN,
    auth_source=AuthSource.DATABASE,
    program_version=__version__,
    database_version="18",
)


@dataclass
class OtherSide:
    """Answers who one is unless `refusing`; tells changes unless `deaf`; times out on all else when `thawed`."""

    refusing: ConsoleError | None = None
    deaf: ConsoleError | None = None
    thawed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    news: "asyncio.Queue[Change]" = field(default_factory=asyncio.Queue)

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        self.asked.append(operation.name)
        if operation.name != ME.name:
            await self.thawed.wait()
            raise TimedOut("That took too long.")
        if self.refusing is not None:
            raise self.refusing
        return operation.answer.model_validate(MYSELF.model_dump())

    async def changes(self) -> AsyncGenerator[Change, None]:
        if self.deaf is not None:
            raise self.deaf
        yield REFETCH
        while True:
            yield await self.news.get()

    async def close(self) -> None:
        """Nothing was opened."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@dataclass
class Watched:
    """A link to another side, and everything it told."""

    side: OtherSide = field(default_factory=OtherSide)
    told: list[LinkStatus] = field(default_factory=list)
    heard: list[Change] = field(default_factory=list)
    asked_before_opening: list[int] = field(default_factory=list)
    late: list[ConsoleError] = field(default_factory=list)
    ended: int = 0
    slow_end: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self.link = Link(
            on_status=self.told.append,
            on_change=self.heard.append,
            clock=lambda: AT,
            on_late=self.late.append,
        )

    @asynccontextmanager
    async def opening(self, say: Say) -> AsyncIterator[Repository]:
        self.asked_before_opening.append(len(self.side.asked))
        say("Opening …")
        await asyncio.sleep(0)
        try:
            yield self.side
        finally:
            if self.slow_end is not None:
                await self.slow_end.wait()
            self.ended += 1

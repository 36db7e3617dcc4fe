"""A console on its routes, and what is asked of the other side meanwhile."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from textual.pilot import Pilot

from agent_console.domain.records import Request
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Change, Repository
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.routes.pane import RoutesPane
from tests.support.fleet import Fleet
from tests.tui_console.stage import Say, app_of, loaded, shown_text, until


def routes_of(app: ConsoleApp) -> RoutesPane:
    assert isinstance(app.pane, RoutesPane)
    return app.pane


def pair_of(app: ConsoleApp) -> tuple[str, str]:
    """The names of the pair under the cursor."""
    pair = routes_of(app).chosen_pair
    assert pair is not None
    return pair.of_name, pair.to_name


async def on_pair(pilot: Pilot[None], fleet: Fleet, of: str, to: str) -> ConsoleApp:
    """The console with its cursor on a pair of the matrix."""
    app = await loaded(pilot)
    moved = routes_of(app).matrix_look.matrix.move_to((str(fleet.agent_id(of)), str(fleet.agent_id(to))))
    assert moved, f"{of} → {to} is in the matrix"
    await pilot.pause()
    return app


async def settle(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one by one, each when all that the matrix shows after the one before it is there."""
    look = routes_of(app_of(pilot)).matrix_look
    # How far a page goes depends on the room: everybody has to have heard of theirs before the first key.
    for _ in range(2):
        await pilot._wait_for_screen()
        await pilot.pause()
    await until(lambda: look.is_settled, "the matrix")
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        await until(lambda: look.is_settled, f"the matrix after {key!r}")
    await pilot.pause()


async def shows(app: ConsoleApp, *words: str) -> None:
    def are_shown() -> bool:
        seen = shown_text(app)
        return all(word in seen for word in words)

    await until(are_shown, f"{words} on the screen")


async def type_words(pilot: Pilot[None], words: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in words))


@dataclass
class Overheard:
    """The real other side, and every question it was asked."""

    side: Repository
    asked: list[tuple[str, Request]] = field(default_factory=list)

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        self.asked.append((operation.name, request))
        return await self.side.call(operation, request)

    def changes(self) -> AsyncGenerator[Change, None]:
        return self.side.changes()

    async def close(self) -> None:
        await self.side.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Whoever opened the other side closes it."""


@dataclass
class Ear:
    """Listens at an opening."""

    opening: Opening
    asked: list[tuple[str, Request]] = field(default_factory=list)

    @asynccontextmanager
    async def __call__(self, say: Say) -> AsyncIterator[Repository]:
        async with self.opening(say) as side:
            yield Overheard(side, self.asked)

    def of(self, name: str) -> list[Request]:
        return [request for operation, request in self.asked if operation == name]

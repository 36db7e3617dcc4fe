"""A console with a request open in it, and the clock in the test's hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from psycopg.types.json import Jsonb
from textual.pilot import Pilot

from agent_console.domain.delegation import digest_of
from agent_console.domain.ids import ApprovalId
from agent_console.repository.port import Topic
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.approvals.screen import ApprovalScreen
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    SteppingClock,
    announce,
    console,
    directly,
    list_of,
    loaded,
    press,
    shown_text,
    until,
)

MOMENT = timedelta(seconds=2)
"""Longer than any grace."""
DEPLOY, STATIONS = "build 4812", "second source"


@dataclass(frozen=True)
class Desk:
    """One operator at one console."""

    pilot: Pilot[None]
    app: ConsoleApp
    clock: SteppingClock

    @property
    def screen(self) -> ApprovalScreen:
        assert isinstance(self.app.detail, ApprovalScreen)
        return self.app.detail

    @property
    def text(self) -> str:
        return shown_text(self.app)

    async def sees(self, *words: str) -> None:
        await until(lambda: all(word in self.text for word in words), f"{words} on:\n{self.text}")

    def wait_a_moment(self) -> None:
        self.clock.now += MOMENT

    async def opens(self, words: str) -> None:
        """Opens the request that begins like this, and reads it for a moment."""
        pane = list_of(self.app)
        source = pane.table.source
        rows = [source.row_at(index) for index in range(len(source))]
        wanted = next(row.id for row in rows if any(words in cell.plain for cell in row.cells))
        assert pane.table.move_to(wanted)
        await press(self.pilot, "enter")
        await until(lambda: isinstance(self.app.detail, ApprovalScreen), "the request")
        self.wait_a_moment()
        self.screen.tick()
        await self.pilot.pause()

    async def arms(self) -> None:
        """Presses `a`, and reads the question for a moment."""
        await self.pilot.press("a")
        await self.sees("y approves, anything else doesn't")
        self.wait_a_moment()


@asynccontextmanager
async def desk(
    opening: Opening, *, size: tuple[int, int] = (80, 24), read_only: bool = False
) -> AsyncIterator[Desk]:
    clock = SteppingClock(AT)
    app = console(opening, start="approvals", clock=clock, read_only=read_only)
    async with app.run_test(size=size, notifications=True) as pilot:
        await loaded(pilot)
        yield Desk(pilot, app, clock)


def at(story: Fleet, email: str = "ana@example.com") -> Opening:
    return directly(story.working, user=email)


def approval_like(story: Fleet, words: str) -> ApprovalId:
    found = story.one("select id::text from approvals where envelope ->> 'input' like %s", f"%{words}%")
    return ApprovalId(str(found))


def state_of(story: Fleet, words: str) -> object:
    return story.one("select state from approvals where envelope ->> 'input' like %s", f"%{words}%")


def tell(story: Fleet) -> None:
    announce(story, Topic.APPROVALS)


def set_words(story: Fleet, words: str, wanted: str) -> None:
    """Other words in the place of these, with a digest that fits: what was read is no longer what is asked."""
    approval_id = approval_like(story, words)
    [(envelope,)] = story.execute("select envelope from approvals where id = %s", approval_id)
    assert isinstance(envelope, dict)
    changed = envelope | {"input": wanted}
    story.execute(
        "update approvals set envelope = %s, digest = %s where id = %s",
        *(Jsonb(changed), digest_of(changed), approval_id),
    )

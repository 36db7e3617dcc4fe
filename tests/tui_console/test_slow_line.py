"""On a slow line, with a fleet that never rests, what is shown still follows."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

import pytest
from textual.widgets import Input

from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Change, Repository, Topic
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.app import STEP_SECONDS
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    ADMIN,
    Say,
    choose,
    console,
    directly,
    header_text,
    list_of,
    loaded,
    press,
    row_ids,
    until,
)


@dataclass
class SlowLine:
    """The real repository, far away: every answer takes longer than the console waits between two looks."""

    near: Repository

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        await asyncio.sleep(STEP_SECONDS * 1.5)
        return await self.near.call(operation, request)

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Something changes all the time."""
        while True:
            yield Change(topic=Topic.JOBS)
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        await self.near.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@pytest.mark.usefixtures("nobody_looks_again")
async def test_a_restless_fleet_on_a_slow_line(fleet: Fleet) -> None:
    @asynccontextmanager
    async def opening(say: Say) -> AsyncIterator[Repository]:
        async with SlowLine(open_direct(fleet.working, team="example", user=ADMIN)) as slow:
            yield slow

    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        known = len(row_ids(list_of(app)))

        fleet.add_jobs(3)
        fleet.execute("update agent_runtime set presence = 'offline', error_message = null")

        await until(lambda: len(row_ids(list_of(app))) == known + 3, "the new jobs")
        await until(lambda: "Offline" in header_text(app), "the pool")


async def test_nothing_blinks_in_a_form(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await choose(app, pilot, "n", "jobs.create")

        fields = app.screen.query(Input)

        assert fields
        assert not any(field.cursor_blink for field in fields)

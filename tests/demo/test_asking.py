"""The person who gives the demo's agents something to do does not flood a queue that nobody works on."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import Self

import pytest

from agent_console.demo.asking import LOOKS_EVERY, WAITING_AT_MOST, WISHES, Asking, Tempo
from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.operations.fleet import ME, QUEUE_DEPTH
from agent_console.repository.port import Change, Repository
from agent_console.repository.postgres.repository import open_direct
from tests.queue.crew import EMPTY
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.tui_console.stage import ADMIN, until

OPERATOR = "ole@example.com"
HURRIED = Tempo(between_jobs=0.0, between_stories=3600.0, after_refusal=0.05)


class Counting:
    """Passes everything on, and counts it."""

    def __init__(self, behind: Repository) -> None:
        self._behind = behind
        self.answered: Counter[str] = Counter()

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await self._behind.call(operation, request)
        self.answered[operation.name] += 1
        return answer

    def changes(self) -> AsyncGenerator[Change, None]:
        return self._behind.changes()

    async def close(self) -> None:
        await self._behind.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def test_who_is_not_let_in_any_more_asks_for_nothing(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """The demo's console and agents are behind the same address."""
    fleet.execute(EMPTY)
    agents = {name: fleet.agent_id(name) for name in WISHES[0].agents}
    async with serving(fleet.working) as url, HttpRepository(url, fleet.token(OPERATOR)) as ole:
        fleet.execute("update users set is_active = false where email = %s", OPERATOR)
        async with asyncio.timeout(60):
            await Asking(ole, agents, fleet.user_id(ADMIN), replace(HURRIED, between_stories=0.0)).go_on()

        async with HttpRepository(url, fleet.token(ADMIN)) as ana:
            me = await ana.call(ME, Nothing())

    assert me.name == "Ana Costa"
    assert caplog.text.count("Nobody asks for anything any more") == 1


async def test_what_nobody_works_on_does_not_pile_up(fleet: Fleet) -> None:
    fleet.execute(EMPTY)
    async with open_direct(fleet.working, team="example", user=OPERATOR) as ole:
        counting = Counting(ole)
        agents = {name: fleet.agent_id(name) for name in WISHES[0].agents}
        asking = asyncio.create_task(Asking(counting, agents, fleet.user_id(ADMIN), HURRIED).go_on())
        try:
            # Enough to fill it several times over, if nobody looked.
            enough = 3 * WAITING_AT_MOST // LOOKS_EVERY
            await until(lambda: counting.answered[QUEUE_DEPTH.name] > enough, "it was looked often enough")
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    made = fleet.one("select count(*) from jobs")
    assert isinstance(made, int)
    assert WAITING_AT_MOST <= made <= WAITING_AT_MOST + LOOKS_EVERY

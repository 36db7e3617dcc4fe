"""What happens in the faulty world meanwhile: jobs, words and questions come, people decide, a console looks.

Whoever asks insists: a write whose answer got lost is asked for again with the same key. What was answered is
written down here, and has to be true for ever after.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from agent_console.domain.approvals import ApprovalListed, ApprovalQuery, Approving, Rejecting
from agent_console.domain.delegation import NewDelegation
from agent_console.domain.errors import ConsoleError, RateLimited
from agent_console.domain.ids import ApprovalId, JobId, MessageId, ThreadId
from agent_console.domain.jobs import NewJob
from agent_console.domain.messages import NewMessage
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_LIST, APPROVALS_REJECT
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.runs import RUNS_DELEGATE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.faults.world import ASKED, ASKER, OPERATORS, World
from tests.support.asking import add_route
from tests.support.conversations import add_thread, let_in

PAUSE_SECONDS = 0.5
AGAIN_SECONDS = 0.1
ASKS_EVERY, SAYS_EVERY = 6, 3
MANY_TRIES = 100

Answer = TypeVar("Answer")


@dataclass
class Told:
    """What was acknowledged, to whom it may matter."""

    jobs: list[JobId] = field(default_factory=list)
    messages: list[MessageId] = field(default_factory=list)
    asked: list[ApprovalId] = field(default_factory=list)
    decided: dict[ApprovalId, list[str]] = field(default_factory=dict)
    heard: int = 0
    """How often the console was told to look again."""


async def insisted(asked: Callable[[], Awaitable[Answer]]) -> Answer:
    while True:
        try:
            return await asked()
        except ConsoleError as error:
            assert error.status >= 500 or isinstance(error, RateLimited), error
            await asyncio.sleep(AGAIN_SECONDS)


class Life:
    """Goes on until the block ends; everything may fail meanwhile, nothing may be forgotten."""

    def __init__(self, world: World, *, seed: int = 0, pause: float = PAUSE_SECONDS) -> None:
        self.world = world
        self.told = Told()
        self.deciding = True
        self._pause = pause
        self._chance = random.Random(seed)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers = 0
        self._asked = world.fleet.agent_id(ASKED)
        self.thread: ThreadId = add_thread(world.fleet, OPERATORS[0], visibility="shared")

    async def __aenter__(self) -> "Life":
        fleet = self.world.fleet
        let_in(fleet, self.thread, ASKER, write=True)
        add_route(fleet, ASKER, ASKED, "requires_human_approval")
        self._people = [await self._caller(fleet.token(email)) for email in OPERATORS]
        self._asker = await self._caller(self.world.keys[ASKER])
        lives = (self._feed(), *(self._decide(place) for place in range(2)), self._look())
        self._tasks = [asyncio.create_task(life) for life in lives]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def stop_feeding(self) -> None:
        self._tasks[0].cancel()
        await asyncio.gather(self._tasks[0], return_exceptions=True)

    def still_alive(self) -> None:
        """Whoever ended, ended with a failure."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def _caller(self, word: str) -> tuple[Repository, Repository]:
        """By way of either server."""
        ways = [await self._stack.enter_async_context(HttpRepository(url, word)) for url in self.world.urls]
        return ways[0], ways[1]

    def _way(self, ways: tuple[Repository, Repository]) -> Repository:
        return self._chance.choice(ways)

    async def put_in(self, place: int | None = None) -> JobId:
        """A job, by way of one server or of any; the same key goes to whichever is tried next."""
        self._numbers += 1
        new = NewJob(type="work", payload={}, idempotency_key=f"job {self._numbers}", max_attempts=MANY_TRIES)

        async def ask() -> JobId:
            person = self._people[1][place] if place is not None else self._way(self._people[1])
            return (await person.call(JOBS_CREATE, new)).id

        self.told.jobs.append(made := await insisted(ask))
        return made

    async def _say(self, number: int) -> MessageId:
        said = NewMessage(thread_id=self.thread, content=f"Word {number}", idempotency_key=f"word {number}")
        return (await self._way(self._people[0]).call(MESSAGES_POST, said)).id

    async def ask_for_a_person(self) -> ApprovalId:
        self._numbers += 1
        number = self._numbers
        asked = NewDelegation(
            to=self._asked,
            thread_id=self.thread,
            input=f"Question {number}",
            idempotency_key=f"question {number}",
        )
        made = await insisted(lambda: self._way(self._asker).call(RUNS_DELEGATE, asked))
        assert made.approval is not None
        self.told.asked.append(made.approval.id)
        return made.approval.id

    async def _feed(self) -> None:
        while True:
            await self.put_in()
            if self._numbers % SAYS_EVERY == 0:
                self.told.messages.append(await insisted(partial(self._say, self._numbers)))
            if self._numbers % ASKS_EVERY == 0:
                await self.ask_for_a_person()
            await asyncio.sleep(self._pause)

    async def _decide(self, place: int) -> None:
        """Both decide everything that waits, one for it and one against, each by way of a server of their own."""
        while True:
            try:
                waiting = (await self._people[place][place].call(APPROVALS_LIST, ApprovalQuery())).items
                for one in waiting if self.deciding else ():
                    await self._decided(place, one)
            except ConsoleError as error:
                assert error.status >= 500 or error.status in (409, 429), error
            await asyncio.sleep(4 * self._pause)

    async def _decided(self, place: int, one: ApprovalListed) -> None:
        person = self._people[place][place]
        if place == 0:
            yes = Approving(approval_id=one.id, digest_seen=one.digest)
            answer = await person.call(APPROVALS_APPROVE, yes)
        else:
            no = Rejecting(approval_id=one.id, digest_seen=one.digest, reason="not now")
            answer = await person.call(APPROVALS_REJECT, no)
        self.told.decided.setdefault(one.id, []).append(answer.state.value)

    async def _look(self) -> None:
        """A console in direct mode."""
        async with (
            open_direct(self.world.fleet.working, team="example", user=OPERATORS[0]) as console,
            aclosing(console.changes()) as changes,
        ):
            async for _ in changes:
                self.told.heard += 1

"""The person who gives the demo's agents something to do: jobs for the queue, and wishes in threads."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import NoReturn

from agent_console.demo.working import AISLE, THREAD
from agent_console.demo.workload import ORDER, Task, program
from agent_console.domain.errors import ConsoleError, Unauthorized
from agent_console.domain.ids import AgentId, ThreadId, UserId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import Visibility
from agent_console.domain.messages import NewMessage
from agent_console.domain.records import PAGE_LIMIT_MAX, Nothing
from agent_console.domain.runs import ThreadRunQuery
from agent_console.domain.states import JobStatus, RunStatus
from agent_console.domain.threads import NewParticipant, NewThread, ThreadQuery, WhichThreads
from agent_console.repository.operations.fleet import JOBS_CREATE, QUEUE_DEPTH
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.runs import RUNS_IN_THREAD
from agent_console.repository.operations.threads import THREADS_CREATE, THREADS_GRANT, THREADS_LIST
from agent_console.repository.port import Repository

AT_ONCE = 8
"""So many jobs come in the first moment, so that nobody has to wait for the fleet to wake up."""
WAITING_AT_MOST = 12
"""While so many wait in the queue nobody adds to them: a queue that is paused does not fill up."""
LOOKS_EVERY = 4
"""After so many jobs it is looked how many wait."""
STOCK_THREAD = "Stock count, aisle by aisle"
OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)

log = logging.getLogger("agent_console.demo")


@dataclass(frozen=True)
class Tempo:
    """How many seconds lie between the things that are asked for."""

    between_jobs: float = 3.0
    between_stories: float = 40.0
    before_again: float = 300.0
    looks: float = 10.0
    after_refusal: float = 3.0


@dataclass(frozen=True)
class Wish:
    """Something that is asked of one agent in a thread of its own, again when it has come to an end."""

    title: str
    words: str
    first: str
    agents: tuple[str, ...]


WISHES = (
    Wish(
        "Nightly build is red",
        "The nightly build {number} is red since 02:10. Get build {number} green, please.",
        "dispatch",
        ("dispatch", "ember", "gantry"),
    ),
    Wish(
        "Report of October",
        "The report of October, please. This is draft {number}.",
        "cartographer",
        ("cartographer", "atlas", "beacon"),
    ),
    Wish(
        "A notice of our supplier",
        "There is a new notice, number {number}. What does the page say?",
        "cartographer",
        ("cartographer", "lantern", "gantry"),
    ),
)


class Asking:
    """What one person does with the operations that every operator has."""

    def __init__(self, operator: Repository, agents: Mapping[str, AgentId], watcher: UserId, tempo: Tempo) -> None:
        """`watcher` is who sits at the console: what is asked in a thread is said in front of them."""
        self._operator = operator
        self._agents = agents
        self._watcher = watcher
        self._tempo = tempo
        # Other ones than those of the last start.
        first = int(datetime.now(UTC).timestamp()) % 100_000
        self._numbers = count(first)
        # From the one after those that were counted before the demo began.
        self._aisles = count(121)

    async def go_on(self) -> None:
        """Until it is cancelled. What is refused is asked again later: somebody may be trying things out.

        Who is not let in any more asks for nothing: a server counts that, and shuts out everybody at the address.
        """
        try:
            async with asyncio.TaskGroup() as asking:
                asking.create_task(self._fill_queue())
                for place, wish in enumerate(WISHES):
                    asking.create_task(self._wish(wish, place * self._tempo.between_stories))
        except* Unauthorized as refusals:
            log.warning("Nobody asks for anything any more: %s", refusals.exceptions[0])

    async def _fill_queue(self) -> NoReturn:
        for number, task in enumerate(program()):
            await self._enqueue(number, task)
            if number >= AT_ONCE:
                await asyncio.sleep(self._tempo.between_jobs)
        raise AssertionError("the program of the demo has no end")

    async def _enqueue(self, number: int, task: Task) -> None:
        while True:
            if await self._tries_to_enqueue(number, task):
                return
            await asyncio.sleep(self._tempo.after_refusal)

    async def _tries_to_enqueue(self, number: int, task: Task) -> bool:
        try:
            if number % LOOKS_EVERY == 0 and await self._is_full():
                return False
            await self._operator.call(JOBS_CREATE, await self._job(task))
        except Unauthorized:
            raise
        except ConsoleError:
            return False
        return True

    async def _is_full(self) -> bool:
        depth = await self._operator.call(QUEUE_DEPTH, Nothing())
        return sum(one.count for one in depth.depths if one.status is JobStatus.QUEUED) >= WAITING_AT_MOST

    async def _job(self, task: Task) -> NewJob:
        payload = {**task.payload, ORDER: next(self._numbers)}
        if task.type == "stock_count" and (thread_id := await self._thread(STOCK_THREAD)) is not None:
            payload |= {THREAD: str(thread_id), AISLE: next(self._aisles)}
        return NewJob(
            type=task.type,
            payload=payload,
            tool=task.tool or task.type,
            required_capabilities=task.needs,
            max_attempts=task.max_attempts,
            priority=task.priority,
        )

    async def _wish(self, wish: Wish, begins_after: float) -> NoReturn:
        await asyncio.sleep(begins_after)
        while True:
            try:
                thread_id = await self._thread(wish.title) or await self._begin(wish)
                if not await self._is_open(thread_id):
                    await self._say(wish, thread_id)
                await self._until_over(thread_id)
                await asyncio.sleep(self._tempo.before_again)
            except Unauthorized:
                raise
            except ConsoleError:
                await asyncio.sleep(self._tempo.after_refusal)

    async def _until_over(self, thread_id: ThreadId) -> None:
        while True:
            await asyncio.sleep(self._tempo.looks)
            if not await self._is_open(thread_id):
                return

    async def _thread(self, title: str) -> ThreadId | None:
        query = ThreadQuery(which=WhichThreads.MINE, limit=PAGE_LIMIT_MAX)
        mine = await self._operator.call(THREADS_LIST, query)
        return next((thread.id for thread in mine.items if thread.title == title), None)

    async def _begin(self, wish: Wish) -> ThreadId:
        new = NewThread(title=wish.title, visibility=Visibility.SHARED)
        thread = await self._operator.call(THREADS_CREATE, new)
        may_write = {"thread_id": thread.id, "can_write": True}
        for name in wish.agents:
            await self._operator.call(THREADS_GRANT, NewParticipant(agent_id=self._agents[name], **may_write))
        await self._operator.call(THREADS_GRANT, NewParticipant(user_id=self._watcher, **may_write))
        return thread.id

    async def _say(self, wish: Wish, thread_id: ThreadId) -> None:
        words = wish.words.format(number=4800 + next(self._numbers) % 1000)
        said = NewMessage(thread_id=thread_id, content=words, to=(self._agents[wish.first],))
        await self._operator.call(MESSAGES_POST, said)

    async def _is_open(self, thread_id: ThreadId) -> bool:
        query = ThreadRunQuery(thread_id=thread_id, status=OPEN, limit=1)
        return bool((await self._operator.call(RUNS_IN_THREAD, query)).items)


def standing_jobs(now: datetime) -> tuple[NewJob, ...]:
    """One that nobody can do and one that is not due: both wait, and the console says why."""
    return (
        NewJob(
            type="transcribe",
            payload={"audio": "call-88.ogg"},
            tool="whisper",
            required_capabilities=("tool:whisper",),
            idempotency_key="demo: nobody can do it",
        ),
        NewJob(
            type="report",
            payload={"month": "2026-11"},
            tool="report",
            required_capabilities=("tool:report",),
            scheduled_for=now + timedelta(days=1),
            idempotency_key="demo: it is not due",
        ),
    )

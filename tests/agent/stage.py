"""Real agents at a real server: the fleet with an empty queue, and agents of it that work in this event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from agent_console.agent import Agent, Handler, Pace
from agent_console.agent.running import Command
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import Job, NewJob
from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import Repository
from tests.support.fleet import Fleet
from tests.support.serving import serving

OPERATOR = "ole@example.com"
LEASE = 10
# Often enough for a test, and seldom enough for the server's limit of heartbeats within a minute.
FAST = Pace(
    heartbeat_seconds=0.3,
    busy_heartbeat_seconds=0.3,
    renewals_per_lease=50,
    claim_seconds=0.5,
    refused_seconds=0.1,
    outcome_seconds=5.0,
    batch_seconds=0.05,
    retry_seconds=(0.05, 0.1),
)


@dataclass
class Stage:
    """A server that can go away and come back at the same address, its operator, and what is in its database."""

    fleet: Fleet
    stack: AsyncExitStack
    url: str = ""
    port: int = 0

    async def start_server(self) -> None:
        self.url = await self.stack.enter_async_context(serving(self.fleet.working, port=self.port))
        self.port = urlsplit(self.url).port or 0

    async def stop_server(self) -> None:
        await self.stack.aclose()

    @asynccontextmanager
    async def caller(self, email: str = OPERATOR) -> AsyncIterator[Repository]:
        async with HttpRepository(self.url, self.fleet.token(email)) as repository:
            yield repository

    async def enqueue(self, **facts: object) -> JobId:
        new = NewJob.model_validate({"type": "work", "payload": {}} | facts)
        async with self.caller() as operator:
            made: Job = await operator.call(JOBS_CREATE, new)
        return made.id

    def key(self, name: str = "atlas") -> str:
        secret = Secret.mint(self.fleet.team_id(), self.fleet.agent_id(name))
        has_room = "update agents set api_key_hash = %s, max_concurrent_jobs = 50 where name = %s"
        self.fleet.execute(has_room, secret.hash, name)
        return secret.word

    def column(self, job_id: JobId, name: str) -> object:
        return self.fleet.one(f"select {name} from jobs where id = %s", job_id)

    def status(self, job_id: JobId) -> object:
        return self.column(job_id, "status")

    def lines(self, job_id: JobId) -> list[tuple[object, object]]:
        """Level and words of what the job itself said, in order."""
        rows = self.fleet.execute(
            "select level, message, payload from job_events where job_id = %s order by seq", job_id
        )
        own = [row for row in rows if not (isinstance(row[2], dict) and "to" in row[2])]
        return [(level, words) for level, words, _ in own if not str(words).startswith("lease renewed")]

    def result(self, job_id: JobId) -> object:
        return self.fleet.one("select result from job_results where job_id = %s", job_id)

    async def ended(self, job_id: JobId) -> str:
        """What became of the job, once it has ended or waits for another try."""
        over = "select coalesce(finished_at, next_attempt_at) is not null from jobs where id = %s"
        await until(lambda: self.fleet.one(over, job_id) is True)
        return str(self.status(job_id))

    def cancel(self, job_id: JobId) -> None:
        self.fleet.execute("update jobs set cancel_requested_at = now() where id = %s", job_id)

    def give_to_another(self, job_id: JobId) -> None:
        """As if the lease had ended and another agent had taken the job."""
        beacon = UUID(int=self.fleet.agent_id("beacon").int)
        self.fleet.execute("update jobs set agent_id = %s, attempt = attempt + 1 where id = %s", beacon, job_id)

    def command(self, *words: str, key: str | None = None) -> Command:
        return Command(words, self.url, key)

    def shell(self, script: str) -> Command:
        return self.command("/bin/sh", "-c", script)

    @asynccontextmanager
    async def working(
        self,
        handler: Handler,
        *,
        name: str = "atlas",
        concurrency: int = 1,
        grace: float = 10.0,
        pace: Pace = FAST,
    ) -> AsyncIterator[Agent]:
        """An agent that works until the block ends, and then leaves at once."""
        agent = Agent(
            self.url, self.key(name), concurrency=concurrency, lease_seconds=LEASE, grace=grace, pace=pace
        )
        agent.handle()(handler)
        running = asyncio.create_task(agent.run(signals=False))
        try:
            yield agent
        finally:
            agent.leave(at_once=True)
            await running


async def until(true: Callable[[], bool]) -> None:
    """Let others work until something is so; a minute is a failure."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

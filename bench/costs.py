"""What one more of everything costs in processor time, for docs/scaling.md.

    python -m bench.costs

Microseconds of the process that asks and of all processes of PostgreSQL, on the embedded PostgreSQL as users get
it, through the repository directly. Tables are analysed first, as autovacuum does it in a database at work.
Whatever else keeps the machine busy makes these figures larger, never smaller.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.queue.more_agents import AddedAgent, crowd
from tests.support.clusters import reachable_folder
from tests.support.example_fleet import fill
from tests.support.fleet import Fleet

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.domain.jobs import NewJob
from agent_console.domain.messages import NewMessage
from agent_console.domain.presence import Heartbeat
from agent_console.domain.threads import NewThread
from agent_console.domain.working import Claim, JobDone
from agent_console.repository.operations.fleet import JOBS_CREATE
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.operations.threads import THREADS_CREATE
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_COMPLETE
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository

TOGETHER = 32
EACH = 20
ITEMS = TOGETHER * EACH
WAITS_SECONDS = 20.0
WORDS = "A hundred characters are about as much as an agent says when it tells its people how far it has come"


class Processor:
    """What has been used so far, in microseconds: by this process, and by the server and all it has started."""

    def __init__(self, folder: Path) -> None:
        self._server = (folder / "data" / "postmaster.pid").read_text().split()[0]

    def used(self) -> tuple[float, float]:
        children = Path(f"/proc/{self._server}/task/{self._server}/children").read_text().split()
        return time.process_time() * 1e6, sum(map(self._of, (self._server, *children)))

    def _of(self, pid: str) -> float:
        with suppress(FileNotFoundError, ProcessLookupError):
            return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000
        return 0.0

    async def per_item(self, what: str, items: int, work: Callable[[], Awaitable[object]]) -> None:
        before = self.used()
        await work()
        ours, servers = (now - then for now, then in zip(self.used(), before, strict=True))
        print(f"| {what} | {servers / items:,.0f} | {ours / items:,.0f} |")


async def beat(agent: PostgresRepository) -> None:
    for _ in range(EACH):
        await agent.call(HEARTBEAT_SEND, Heartbeat(metrics={"cpu": 0.3, "memory": 0.5}))


async def work(agent: PostgresRepository) -> None:
    """Complete each job and claim the next with one call, until there is none."""
    wanted = Claim(auto_start=True)
    claimed = await agent.call(CLAIMS_TAKE, wanted)
    while claimed.jobs:
        job = claimed.jobs[0]
        done = JobDone(job_id=job.id, attempt=job.attempt, result_summary="done", claim_next=wanted)
        ended = await agent.call(JOBS_COMPLETE, done)
        if ended.next is None:
            return
        claimed = ended.next


async def measure(fleet: Fleet, processor: Processor) -> None:
    backend = Backend(fleet.working)
    added: list[AddedAgent] = crowd(fleet, TOGETHER)
    agents = [PostgresRepository(backend, by_token(agent.secret)) for agent in added]
    person = PostgresRepository(backend, by_name("example", "ole@example.com"))
    fleet.execute("truncate jobs, lanes, queue_moves, queue_counts, queue_tallies cascade")
    thread = await person.call(THREADS_CREATE, NewThread(title="Costs"))
    numbers = itertools.count()

    async def all_of(one: Callable[[PostgresRepository], Awaitable[object]]) -> None:
        await asyncio.gather(*(one(agent) for agent in agents))

    async def put_in() -> None:
        for _ in range(ITEMS):
            await person.call(JOBS_CREATE, NewJob(type="work", payload={"number": next(numbers)}))

    async def say() -> None:
        for _ in range(ITEMS):
            await person.call(MESSAGES_POST, NewMessage(thread_id=thread.id, content=WORDS[:100]))

    async def wait(agent: PostgresRepository) -> None:
        await agent.call(CLAIMS_TAKE, Claim(wait_seconds=WAITS_SECONDS))

    await all_of(beat)
    await SEAL_ACTS.round(backend)
    print("| one more | database, µs | process, µs |\n|---|--:|--:|")
    await processor.per_item(f"heartbeat, {TOGETHER} agents at once", ITEMS, lambda: all_of(beat))
    await processor.per_item("job put in, one after the other", ITEMS, put_in)
    await processor.per_item("act sealed", ITEMS, lambda: SEAL_ACTS.round(backend))
    fleet.execute("analyze")
    await processor.per_item(f"job claimed and completed, {TOGETHER} agents at once", ITEMS, lambda: all_of(work))
    await processor.per_item("message of 100 characters", ITEMS, say)
    minutes = TOGETHER * WAITS_SECONDS / 60
    await processor.per_item("minute that an agent waits for a job", round(minutes), lambda: all_of(wait))
    await backend.close()


def main() -> int:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        migrate(server.dsn())
        fill(server.dsn(), datetime.now(UTC))
        asyncio.run(measure(Fleet(server.dsn()), Processor(folder / "data")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""PgQueuer, run as its own command line runs it: asyncpg on uvloop, a queue manager on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import uvloop
from bench.queue.slices import Contender, Tally
from bench.queue.stores import Store
from pgqueuer.adapters.connections import connect_asyncpg
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

ONE_EACH = "PgQueuer, batches of 1"
TEN_EACH = "PgQueuer, batches of 10 (its default)"
BATCH = 10
ENTRYPOINT = "report"

ADD = """
    insert into pgqueuer (priority, status, entrypoint, payload)
    select 0, 'queued', 'report', '{"month": "2026-10"}' from generate_series(1, %(jobs)s)
"""
WAITING = "select count(*) from pgqueuer where status = 'queued'"


async def install(dsn: str) -> None:
    async with connect_asyncpg(dsn) as connection:
        await Queries.from_asyncpg_connection(connection).install()


def pgqueuer(dsn: str) -> tuple[Contender, Contender]:
    """With a job at a time, and with its default batches."""
    asyncio.run(install(dsn))
    store = Store(dsn, add=ADD, waiting=WAITING, silently=True)

    def with_batches(name: str, batch: int) -> Contender:
        @asynccontextmanager
        async def working(workers: int) -> AsyncIterator[Tally]:
            async with at_work(dsn, workers, batch) as tally:
                yield tally

        return Contender(name, store, working, loop_factory=uvloop.new_event_loop)

    return with_batches(ONE_EACH, 1), with_batches(TEN_EACH, BATCH)


@asynccontextmanager
async def at_work(dsn: str, workers: int, batch: int) -> AsyncIterator[Tally]:
    tally = Tally()

    async def report(job: Job) -> None:
        tally.add()

    async with AsyncExitStack() as leaving:
        managers, tasks = [], []
        for _ in range(workers):
            connection = await leaving.enter_async_context(connect_asyncpg(dsn))
            manager = QueueManager(Queries.from_asyncpg_connection(connection))
            manager.entrypoint(ENTRYPOINT)(report)
            managers.append(manager)
            tasks.append(asyncio.create_task(manager.run(batch_size=batch)))
        try:
            yield tally
        finally:
            for manager in managers:
                manager.shutdown.set()
            await asyncio.gather(*tasks)

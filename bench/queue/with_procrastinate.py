"""Procrastinate, run as its documentation says: `App.run_worker_async` on psycopg, all else at its default."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from bench.queue.slices import Contender, Tally
from bench.queue.stores import Store
from procrastinate import App, PsycopgConnector

FLEET = "Procrastinate, a fleet of workers"
ONE_WORKER = "Procrastinate, one worker, concurrency n"
TASK = "report"

ADD = """
    insert into procrastinate_jobs (queue_name, task_name, args)
    select 'default', 'report', '{"month": "2026-10"}' from generate_series(1, %(jobs)s)
"""
WAITING = "select count(*) from procrastinate_jobs where status = 'todo'"


@asynccontextmanager
async def opened(dsn: str, connections: int) -> AsyncIterator[App]:
    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=connections, max_size=connections))
    async with app.open_async():
        yield app


async def install(dsn: str) -> None:
    async with opened(dsn, 1) as app:
        await app.schema_manager.apply_schema_async()


def procrastinate(dsn: str) -> tuple[Contender, Contender]:
    """Both ways to have n workers: n workers with a job each, and one worker with n jobs."""
    asyncio.run(install(dsn))
    store = Store(dsn, add=ADD, waiting=WAITING, silently=True)

    @asynccontextmanager
    async def fleet(workers: int) -> AsyncIterator[Tally]:
        async with at_work(dsn, workers=workers, concurrency=1) as tally:
            yield tally

    @asynccontextmanager
    async def one_worker(workers: int) -> AsyncIterator[Tally]:
        async with at_work(dsn, workers=1, concurrency=workers) as tally:
            yield tally

    return Contender(FLEET, store, fleet), Contender(ONE_WORKER, store, one_worker)


@asynccontextmanager
async def at_work(dsn: str, *, workers: int, concurrency: int) -> AsyncIterator[Tally]:
    tally = Tally()

    async def report(month: str) -> None:
        tally.add()

    async with AsyncExitStack() as leaving:
        tasks = []
        for _ in range(workers):
            # One connection for each job; the one that listens comes on top.
            app = await leaving.enter_async_context(opened(dsn, concurrency))
            app.task(name=TASK)(report)
            running = app.run_worker_async(concurrency=concurrency, install_signal_handlers=False)
            tasks.append(asyncio.create_task(running))
        try:
            yield tally
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

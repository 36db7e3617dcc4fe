"""The ceiling: what this machine does when each step is one UPDATE of one row by its primary key."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
from bench.queue.slices import Contender, Tally
from bench.queue.stores import Store

NAME = "one-row UPDATE (the ceiling)"

# Room on every page, as a table that is made for updates has it.
MAKE = """
    create table one_row (
        id bigint generated always as identity primary key, status text not null, changed_at timestamptz
    ) with (fillfactor = 70)
"""
ADD = "insert into one_row (status) select 'queued' from generate_series(1, %(jobs)s)"
COUNT = "select count(*) from one_row"
CHANGE = "update one_row set status = 'running', changed_at = now() where id = %s"

Connection = psycopg.AsyncConnection[tuple[object, ...]]


def ceiling(dsn: str) -> Contender:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MAKE)

    @asynccontextmanager
    async def working(workers: int) -> AsyncIterator[Tally]:
        tally = Tally()
        async with AsyncExitStack() as leaving:
            connections = [await leaving.enter_async_context(await _connect(dsn)) for _ in range(workers)]
            ((rows,),) = await (await connections[0].execute(COUNT)).fetchall()
            assert isinstance(rows, int)
            share = rows // workers
            tasks = [
                asyncio.create_task(_change(connection, place * share, share, tally))
                for place, connection in enumerate(connections)
            ]
            try:
                yield tally
            finally:
                tally.stopped = True
                await asyncio.gather(*tasks)

    return Contender(NAME, Store(dsn, add=ADD, waiting=COUNT, fed=False), working)


async def _connect(dsn: str) -> Connection:
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)


async def _change(connection: Connection, first: int, share: int, tally: Tally) -> None:
    """Every worker has rows of its own, so that nobody waits for another's lock."""
    changed = 0
    while not tally.stopped:
        await connection.execute(CHANGE, (first + 1 + changed % share,))
        changed += 1
        tally.add()

"""What the audit trail costs those who write, and what a long thread costs those who read; else exit code 1.

    python -m bench.messages

Posting through the repository by 32 writers, each to a thread of its own: with the audit row in the transaction of
the message, beside the same without it, in turns. At least 0.7 of the messages have to remain. Then a page of a
thread at a depth of 1,000,000 messages beside its first page, in turns: the time the server needs (EXPLAIN
ANALYZE, planning left out) and the time until the answer is there may grow to 1.2 times. Both on the embedded
PostgreSQL as users get it.
"""

import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg
from bench.fleet_size import statements
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.audit import AuditEvent
from agent_console.domain.ids import AuditId, TeamId, ThreadId, UserId
from agent_console.domain.messages import MessageQuery, NewMessage
from agent_console.domain.threads import NewThread
from agent_console.repository.operations.messages import MESSAGES_LIST, MESSAGES_POST
from agent_console.repository.operations.threads import THREADS_CREATE
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from agent_console.repository.postgres.work import Work

TEAM = "talk"
WRITERS = 32
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
TURNS = 5
DEEP = int(os.environ.get("BENCH_MESSAGES", "1000000"))
TIMES = 101
RATIO_LIMIT = 0.7
GROWTH_LIMIT = 1.2

WORDS = "The pump of line seven failed again; I restarted it and will look at the log of the last hour. "
# A thousand different words, so that the index of the words is as large as it would be.
FILL = """
    insert into messages (team_id, id, thread_id, author_type, author_user_id, content, created_at)
    select %s, overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid, %s, 'human', %s,
           %s || 'w' || n %% 1000, now() - (%s - n) * interval '1 second'
      from generate_series(%s::int, %s::int) as n
"""
FILL_AT_ONCE = 100_000

Connection = psycopg.Connection[tuple[object, ...]]


@contextmanager
def audited(wanted: bool) -> Iterator[None]:
    """Without: the one thing that is left out is the row of the audit trail."""

    async def nothing(work: Work, event: AuditEvent, at: datetime) -> AuditId:
        return AuditId.new()

    kept = audit.append
    if not wanted:
        audit.append = nothing
    try:
        yield
    finally:
        audit.append = kept


async def posts_per_second(repository: PostgresRepository, threads: list[ThreadId]) -> float:
    """Each writer waits for its answer before it writes again."""
    until = time.perf_counter() + SECONDS
    numbers = itertools.count()

    async def writing(thread_id: ThreadId) -> int:
        done = 0
        while time.perf_counter() < until:
            new = NewMessage(thread_id=thread_id, content=f"{WORDS}w{next(numbers) % 1000}")
            await repository.call(MESSAGES_POST, new)
            done += 1
        return done

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(writing(thread_id) for thread_id in threads)))
    return done / (time.perf_counter() - began)


async def posting(repository: PostgresRepository) -> float:
    """How many of the messages remain when each has its audit row."""
    threads = [(await repository.call(THREADS_CREATE, NewThread())).id for _ in range(WRITERS)]
    with statements() as sent:
        await repository.call(MESSAGES_POST, NewMessage(thread_id=threads[0], content=WORDS))
    told: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(TURNS):
        for with_rows in (True, False):
            with audited(with_rows):
                told[with_rows].append(await posts_per_second(repository, threads))
    rates = {with_rows: statistics.median(found) for with_rows, found in told.items()}
    ratio = rates[True] / rates[False]
    print(
        f"{WRITERS} writers: {rates[True]:,.0f} messages/s with audit rows, {rates[False]:,.0f} without,"
        f" ratio {ratio:.2f}; {len(sent)} statements for a message"
    )
    return ratio


@dataclass(frozen=True)
class Reading:
    """Milliseconds of the server alone, and until the answer was there."""

    server: float
    waited: float


def fill(connection: Connection, team_id: TeamId, user_id: UserId, thread_id: ThreadId) -> None:
    began = time.perf_counter()
    for first in range(1, DEEP + 1, FILL_AT_ONCE):
        last = min(DEEP, first + FILL_AT_ONCE - 1)
        connection.execute(FILL, (team_id, thread_id, user_id, WORDS, DEEP, first, last))
    connection.execute("vacuum analyze messages")
    print(f"{DEEP:,} messages came in within {time.perf_counter() - began:.0f} s")


async def read(repository: PostgresRepository, connection: Connection, query: MessageQuery) -> Reading:
    began = time.perf_counter()
    with statements() as sent:
        await repository.call(MESSAGES_LIST, query)
    waited = 1000 * (time.perf_counter() - began)
    (page,) = [(statement, given) for statement, given in sent if "ORDER BY messages.seq" in statement]
    assert isinstance(page[1], dict)
    ((told,),) = connection.execute(b"explain (analyze, timing off, format json) " + page[0].encode(), page[1])
    assert isinstance(told, list)
    return Reading(float(told[0]["Execution Time"]), waited)


async def growth(repository: PostgresRepository, connection: Connection, thread_id: ThreadId) -> float:
    """How much more the deepest page takes than the first one."""
    ((oldest,),) = connection.execute("select min(seq) from messages where thread_id = %s", (thread_id,))
    assert isinstance(oldest, int)
    queries = (MessageQuery(thread_id=thread_id), MessageQuery(thread_id=thread_id, before_seq=oldest + 51))
    taken: tuple[list[Reading], list[Reading]] = ([], [])
    for _ in range(TIMES):
        for query, found in zip(queries, taken, strict=True):
            found.append(await read(repository, connection, query))
    server = [statistics.median(one.server for one in found) for found in taken]
    waited = [statistics.median(one.waited for one in found) for found in taken]
    grown = server[1] / server[0], waited[1] / waited[0]
    print(
        f"first page {server[0]:.2f} ms of the server, {waited[0]:.2f} ms waited;"
        f" at a depth of {DEEP:,} {server[1]:.2f} and {waited[1]:.2f}: {grown[0]:.2f} and {grown[1]:.2f} times"
    )
    return max(grown)


def settle(connection: Connection) -> tuple[TeamId, UserId]:
    team_id, user_id = TeamId.new(), UserId.new()
    connection.execute("insert into teams (id, slug, name) values (%s, %s, %s)", (team_id, TEAM, TEAM))
    connection.execute(
        "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, 'admin')",
        (team_id, user_id, f"admin@{TEAM}.example", TEAM),
    )
    return team_id, user_id


async def measure(dsn: str) -> bool:
    backend = Backend(with_role(dsn, APP), pool_size=8)
    repository = PostgresRepository(backend, by_name(TEAM, None))
    with psycopg.connect(dsn, autocommit=True) as connection:
        team_id, user_id = settle(connection)
        kept = await posting(repository)
        thread_id = (await repository.call(THREADS_CREATE, NewThread(title="long"))).id
        fill(connection, team_id, user_id, thread_id)
        grown = await growth(repository, connection, thread_id)
    await backend.close()
    return kept >= RATIO_LIMIT and grown <= GROWTH_LIMIT


def main() -> int:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        migrate(server.dsn())
        return 0 if asyncio.run(measure(server.dsn())) else 1


if __name__ == "__main__":
    sys.exit(main())

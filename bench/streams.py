"""What open live streams cost a server, and how soon they tell; beyond the limits, exit code 1.

    python -m bench.streams

A real server process on the embedded PostgreSQL. First its memory without streams and with 1,000 open ones, each
with a credential of its own, and what they cost while nothing happens: processor time, and transactions beside
those of the duties. Then 500 events a second for some seconds over 20 open streams, and how long each took from
its commit to the client: notices of jobs that are put in, and the lines of a job that an agent reports, both
through the same server; and, without a limit, lines that another process writes.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from bench.fleet_size import add_team
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import EmbeddedServer, embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import JobEventId, JobId, OperatorTokenId, TeamId
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.domain.secrets import Secret
from agent_console.domain.working import Claim, EventLine, JobLines
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_LOG
from agent_console.repository.port import Topic
from agent_console.repository.postgres.repository import Backend

STREAMS = int(os.environ.get("BENCH_STREAMS", "1000"))
READERS = 20
IDLE_SECONDS = 10.0
SECONDS = float(os.environ.get("BENCH_SECONDS", "8"))
ROUNDS_A_SECOND, EVENTS_A_ROUND = 20, 25
MEGABYTES_LIMIT = 200
P99_LIMIT = 0.1

TOKENS = """
    insert into operator_tokens (team_id, id, user_id, created_by_user_id, token_hash, token_prefix)
    select u.team_id, k.id, u.id, u.id, k.hash, k.prefix
      from unnest(%s::uuid[], %s::text[], %s::text[]) as k (id, hash, prefix)
     cross join users u where u.team_id = %s and u.kind = 'human'
"""
LINES = """
    insert into job_events (team_id, id, job_id, level, message)
    select %s, new_id(), %s, 'info', 'line ' || n from generate_series(1, %s) as n
"""
COMMITTED_AT = "select id, extract(epoch from pg_xact_commit_timestamp(xmin))::float8 from {}"
COMMITS = "select xact_commit from pg_stat_database where datname = current_database()"


@dataclass(frozen=True)
class Stage:
    dsn: str
    address: str
    server: int
    team_id: TeamId
    keys: list[str]
    agent_key: str

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.server}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def processor_seconds(self) -> float:
        words = Path(f"/proc/{self.server}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def committed_at(self, table: LiteralString) -> dict[str, float]:
        """When each row of the table was committed, by id."""
        with psycopg.connect(self.dsn) as connection:
            rows = connection.execute(COMMITTED_AT.format(table).encode()).fetchall()
        kind = JobId if table == "jobs" else JobEventId
        return {str(kind.of(row)): at for row, at in rows}

    def commits(self) -> int:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            ((count,),) = connection.execute(COMMITS).fetchall()
        return int(count)


@contextmanager
def timing_postgres(folder: Path) -> Iterator[EmbeddedServer]:
    """One that keeps the time of every commit."""
    with embedded_postgres(folder) as server, psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("alter system set track_commit_timestamp = on")
    with embedded_postgres(folder) as server:
        yield server


@contextmanager
def staged() -> Iterator[Stage]:
    with reachable_folder(in_memory=False) as folder, timing_postgres(folder / "data") as postgres:
        dsn = postgres.dsn()
        migrate(dsn)
        team_id, agents = add_team(dsn, "live", 10)
        secrets = [Secret.mint(team_id, OperatorTokenId.new()) for _ in range(max(STREAMS, READERS + 1))]
        with psycopg.connect(dsn, autocommit=True) as connection:
            facts = ([s.owner for s in secrets], [s.hash for s in secrets], [s.shown_prefix for s in secrets])
            connection.execute(TOKENS, (*facts, team_id))
            key = Secret.mint(team_id, agents[0])
            connection.execute("update agents set api_key_hash = %s where id = %s", (key.hash, agents[0]))
        words = [sys.executable, "-m", "agent_console", "--dsn", with_role(dsn, APP), "serve"]
        words += ["--no-access-log", "--port", "0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            try:
                yield Stage(dsn, address, program.pid, team_id, [secret.word for secret in secrets], key.word)
            finally:
                program.terminate()


@asynccontextmanager
async def opened(stage: Stage, key: str, path: str = "/v1/changes") -> AsyncIterator[asyncio.StreamReader]:
    """A plain connection, which has read as far as the first event."""
    host, _, port = stage.address.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    try:
        status = await reader.readline()
        assert b" 200 " in status, status
        await reader.readuntil(b"\nevent: ")
        yield reader
    finally:
        writer.close()


async def standing_open(stage: Stage) -> bool:
    before = stage.megabytes()
    async with AsyncExitStack() as stack:
        for key in stage.keys[:STREAMS]:
            await stack.enter_async_context(opened(stage, key))
        await asyncio.sleep(6.0)
        spent, commits = stage.processor_seconds(), stage.commits()
        await asyncio.sleep(IDLE_SECONDS)
        spent, commits = stage.processor_seconds() - spent, stage.commits() - commits
        after = stage.megabytes()
    print(
        f"{STREAMS:,} open streams: {before:.0f} MB before, {after:.0f} MB with them;"
        f" idle {spent / IDLE_SECONDS:.1%} of a core, {commits / IDLE_SECONDS:.0f} transactions/s"
    )
    return after < MEGABYTES_LIMIT


def told(name: str, delays: list[float]) -> bool:
    p50, p99 = statistics.median(delays), statistics.quantiles(delays, n=100)[98]
    rate = len(delays) / READERS / SECONDS
    print(
        f"{name}: {rate:.0f} events/s over {READERS} streams,"
        f" p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, most {max(delays) * 1000:.0f} ms"
    )
    return p99 < P99_LIMIT


async def in_rounds() -> AsyncIterator[None]:
    began = time.perf_counter()
    for n in range(int(SECONDS * ROUNDS_A_SECOND)):
        await asyncio.sleep(max(0.0, began + n / ROUNDS_A_SECOND - time.perf_counter()))
        yield


async def hear(reader: asyncio.StreamReader, heard: list[tuple[float, str]]) -> None:
    """When each line of data came."""
    while line := await reader.readline():
        if line.startswith(b"data: "):
            heard.append((time.time(), line[6:].decode()))


@asynccontextmanager
async def hearing(stage: Stage, path: str) -> AsyncIterator[list[tuple[float, str]]]:
    heard: list[tuple[float, str]] = []
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(opened(stage, key, path)) for key in stage.keys[:READERS]]
        tasks = [asyncio.create_task(hear(reader, heard)) for reader in readers]
        yield heard
        await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()


async def notices(stage: Stage) -> bool:
    jobs = NewJobs(jobs=tuple(NewJob(type="bench", payload={}) for _ in range(EVENTS_A_ROUND)))
    async with (
        HttpRepository(stage.address, stage.keys[READERS]) as writer,
        hearing(stage, "/v1/changes") as heard,
    ):
        calls = [asyncio.create_task(writer.call(JOBS_CREATE_MANY, jobs)) async for _ in in_rounds()]
        await asyncio.gather(*calls)
    committed = stage.committed_at("jobs")
    changes = [(at, json.loads(data)) for at, data in heard]
    delays = [at - committed[change["id"]] for at, change in changes if change["id"] in committed]
    return told("notices, written through the same server", delays)


def delays_of(stage: Stage, heard: list[tuple[float, str]]) -> list[float]:
    committed = stage.committed_at("job_events")
    lines = [(at, json.loads(data)) for at, data in heard]
    delays = [at - committed[line["id"]] for at, line in lines if line]
    assert len(delays) == READERS * EVENTS_A_ROUND * int(SECONDS * ROUNDS_A_SECOND), "rows were lost or repeated"
    return delays


async def reported_lines(stage: Stage) -> tuple[JobId, bool]:
    lines = tuple(EventLine(message=f"line {n}") for n in range(EVENTS_A_ROUND))
    async with HttpRepository(stage.address, stage.agent_key) as agent:
        (job,) = (await agent.call(CLAIMS_TAKE, Claim(auto_start=True))).jobs
        report = JobLines(job_id=job.id, attempt=job.attempt, events=lines)
        async with hearing(stage, f"/v1/stream?log=job_events&job_id={job.id}") as heard:
            calls = [asyncio.create_task(agent.call(JOBS_LOG, report)) async for _ in in_rounds()]
            await asyncio.gather(*calls)
    return job.id, told("lines of a job, reported through the same server", delays_of(stage, heard))


async def foreign_lines(stage: Stage, job_id: JobId) -> None:
    backend = Backend(with_role(stage.dsn, APP))
    async with (
        hearing(stage, f"/v1/stream?log=job_events&job_id={job_id}") as heard,
        await psycopg.AsyncConnection.connect(stage.dsn, autocommit=True) as connection,
    ):
        async for _ in in_rounds():
            await connection.execute(LINES, (stage.team_id, job_id, EVENTS_A_ROUND))
            backend.announcer.announce(stage.team_id, Topic.JOBS, job_id)
    await backend.close()
    told("lines of a job, written by another process", delays_of(stage, heard))


async def measured(stage: Stage) -> bool:
    small, soon = await standing_open(stage), await notices(stage)
    job_id, as_soon = await reported_lines(stage)
    await foreign_lines(stage, job_id)
    return small and soon and as_soon


if __name__ == "__main__":
    with staged() as stage:
        sys.exit(0 if asyncio.run(measured(stage)) else 1)

"""Putting jobs in: one at a time, and a thousand at a time."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass

import uvloop
from bench.queue import ours, with_pgqueuer, with_procrastinate
from bench.queue.plan import Plan
from bench.queue.stores import database
from bench.queue.told import Found, Limit, Table
from pgqueuer.adapters.connections import create_asyncpg_pool
from pgqueuer.domain.settings import ConnectionSettings
from pgqueuer.queries import Queries
from procrastinate.types import JSONValue

from agent_console.database.embedded import EmbeddedServer
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import JOBS_AT_ONCE, NewJobs
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository

OURS, PROCRASTINATE, PGQUEUER = "ours", "Procrastinate", "PgQueuer"
CONNECTIONS = 8
CALLERS = (1, 32)
MEANING = f"""\
Jobs per second that were put in and answered for. One at a time, by one caller and by {CALLERS[1]}
callers of one process at once ({CONNECTIONS} connections each): jobs.create, `defer_async`, `enqueue`.
Together, {JOBS_AT_ONCE:,} in a call by one caller: jobs.create_many, `batch_defer_async`, `enqueue` of
lists. Ours writes the event and the audit row as well, Procrastinate its event row, PgQueuer its log
row. In brackets: how many times as fast ours is."""


@dataclass(frozen=True)
class Entrance:
    """How jobs get in: a way for one, and a way for a thousand."""

    one: Callable[[], Awaitable[object]]
    many: Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Enqueuer:
    name: str
    opened: Callable[[], AbstractAsyncContextManager[Entrance]]
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


def our_enqueuer(dsn: str) -> Enqueuer:
    team = ours.settle(dsn)

    def new_job() -> NewJob:
        return NewJob(type=ours.TYPES[0], payload={**ours.PAYLOAD})

    @asynccontextmanager
    async def opened() -> AsyncIterator[Entrance]:
        backend = Backend(team.app_dsn, pool_size=CONNECTIONS)
        repository = PostgresRepository(backend, by_name(ours.TEAM, None))
        yield Entrance(
            one=lambda: repository.call(JOBS_CREATE, new_job()),
            many=lambda: repository.call(
                JOBS_CREATE_MANY, NewJobs(jobs=tuple(new_job() for _ in range(JOBS_AT_ONCE)))
            ),
        )
        await backend.close()

    return Enqueuer(OURS, opened)


def procrastinate_enqueuer(dsn: str) -> Enqueuer:
    asyncio.run(with_procrastinate.install(dsn))

    @asynccontextmanager
    async def opened() -> AsyncIterator[Entrance]:
        async with with_procrastinate.opened(dsn, CONNECTIONS) as app:
            task = app.configure_task(with_procrastinate.TASK, allow_unknown=True)
            payload: dict[str, JSONValue] = {**ours.PAYLOAD}
            payloads = [payload] * JOBS_AT_ONCE
            yield Entrance(
                one=lambda: task.defer_async(**payload),
                many=lambda: task.batch_defer_async(*payloads),
            )

    return Enqueuer(PROCRASTINATE, opened)


def pgqueuer_enqueuer(dsn: str) -> Enqueuer:
    asyncio.run(with_pgqueuer.install(dsn))
    entrypoint, payload = with_pgqueuer.ENTRYPOINT, b'{"month": "2026-10"}'
    entrypoints: list[str] = [entrypoint] * JOBS_AT_ONCE
    payloads: list[bytes | None] = [payload] * JOBS_AT_ONCE

    @asynccontextmanager
    async def opened() -> AsyncIterator[Entrance]:
        settings = ConnectionSettings(pool_min_size=CONNECTIONS, pool_max_size=CONNECTIONS)
        async with create_asyncpg_pool(dsn, settings) as pool:
            queries = Queries.from_asyncpg_pool(pool)
            yield Entrance(
                one=lambda: queries.enqueue(entrypoint, payload),
                many=lambda: queries.enqueue(entrypoints, payloads, [0] * JOBS_AT_ONCE),
            )

    return Enqueuer(PGQUEUER, opened, loop_factory=uvloop.new_event_loop)


async def _calls_per_second(call: Callable[[], Awaitable[object]], callers: int, seconds: float) -> float:
    """Each caller waits for its answer before it calls again; the first call of each is for warming up."""
    await asyncio.gather(*(call() for _ in range(callers)))
    began = time.perf_counter()

    async def calling() -> int:
        done = 0
        while time.perf_counter() < began + seconds:
            await call()
            done += 1
        return done

    done = sum(await asyncio.gather(*(calling() for _ in range(callers))))
    return done / (time.perf_counter() - began)


async def _rates(enqueuer: Enqueuer, seconds: float) -> tuple[float, ...]:
    async with enqueuer.opened() as entrance:
        single = [await _calls_per_second(entrance.one, callers, seconds) for callers in CALLERS]
        together = await _calls_per_second(entrance.many, 1, seconds)
    return (*single, JOBS_AT_ONCE * together)


def _in_turns(enqueuers: Sequence[Enqueuer], plan: Plan) -> dict[str, tuple[float, ...]]:
    taken: dict[str, list[tuple[float, ...]]] = {enqueuer.name: [] for enqueuer in enqueuers}
    for _ in range(plan.turns):
        for enqueuer in enqueuers:
            with asyncio.Runner(loop_factory=enqueuer.loop_factory) as runner:
                rates = runner.run(_rates(enqueuer, plan.seconds))
            print(f"    {enqueuer.name:<42} {', '.join(f'{rate:,.0f}/s' for rate in rates)}", flush=True)
            taken[enqueuer.name].append(rates)
    return {
        name: tuple(statistics.median(way) for way in zip(*rates, strict=True)) for name, rates in taken.items()
    }


def measure(server: EmbeddedServer, plan: Plan) -> Found:
    with ExitStack() as leaving:
        enqueuers = (
            our_enqueuer(leaving.enter_context(database(server, "bench_ours"))),
            procrastinate_enqueuer(leaving.enter_context(database(server, "bench_procrastinate"))),
            pgqueuer_enqueuer(leaving.enter_context(database(server, "bench_pgqueuer"))),
        )
        found = _in_turns(enqueuers, plan)
    columns = ("jobs/s", *(f"one, {callers} caller{'s' * (callers > 1)}" for callers in CALLERS), "1,000 a call")
    table = Table("Putting jobs in", MEANING, columns, tuple(_rows(found)))
    bulk = found[OURS][-1] / found[PROCRASTINATE][-1]
    return Found((table,), (Limit("enqueue in bulk, to Procrastinate's batch_defer", bulk, 5),))


def _rows(found: dict[str, tuple[float, ...]]) -> Iterator[tuple[str, ...]]:
    for name, rates in found.items():
        cells = (f"{rate:,.0f} ({own / rate:.2f})" for own, rate in zip(found[OURS], rates, strict=True))
        yield (name, *cells)

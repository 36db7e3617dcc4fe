"""One slice: a contender's workers at work for some seconds, and what that came to."""

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from bench.queue.plan import Plan
from bench.queue.stores import Store, reserve

FED_AT_ONCE = 5_000
LOOK_SECONDS = 0.005
BEGIN_SECONDS = 60.0
BACKENDS = """
    select pid from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
"""


@dataclass
class Tally:
    """What a contender's workers have done so far, and how long the answers took where we wait for them."""

    done: int = 0
    waits: list[float] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False

    def add(self) -> None:
        self.done += 1
        self.begun.set()


@dataclass(frozen=True)
class Contender:
    """`working` lets this many workers work on the store for as long as its block lasts."""

    name: str
    store: Store
    working: Callable[[int], AbstractAsyncContextManager[Tally]]
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


@dataclass(frozen=True)
class Slice:
    """CPU is in microseconds a job: of the connections that served the workers, and of the workers' process."""

    rate: float
    server_cpu: float
    client_cpu: float
    p50: float | None
    p99: float | None

    @property
    def cpu(self) -> float:
        return self.server_cpu + self.client_cpu


@dataclass(frozen=True)
class _Reading:
    at: float
    done: int
    waits: int
    client: float
    server: dict[int, int]


@asynccontextmanager
async def _fed(
    store: Store, depth: int, tally: Tally
) -> AsyncIterator["psycopg.AsyncConnection[tuple[object, ...]]"]:
    """Keep the store at its depth; the connection that does it is counted as nobody's cost."""
    async with await psycopg.AsyncConnection.connect(store.feeding_dsn, autocommit=True) as connection:
        feeding = asyncio.create_task(_feed(connection, store, depth, tally)) if store.fed else None
        try:
            yield connection
        finally:
            if feeding is not None:
                feeding.cancel()
                with suppress(asyncio.CancelledError):
                    await feeding


async def _feed(
    connection: "psycopg.AsyncConnection[tuple[object, ...]]", store: Store, depth: int, tally: Tally
) -> None:
    filled = depth + reserve(depth)
    step = min(FED_AT_ONCE, reserve(depth))
    while True:
        while filled - tally.done < depth:
            await connection.execute(store.add, store.asked(step))
            filled += step
        await asyncio.sleep(LOOK_SECONDS)


def _processor_time(pid: int) -> int:
    """Nanoseconds on a processor; nothing for who is gone."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


async def _reading(connection: "psycopg.AsyncConnection[tuple[object, ...]]", tally: Tally) -> _Reading:
    pids = [pid for (pid,) in await (await connection.execute(BACKENDS)).fetchall() if isinstance(pid, int)]
    server = {pid: _processor_time(pid) for pid in pids}
    return _Reading(time.perf_counter(), tally.done, len(tally.waits), time.process_time(), server)


def _between(before: _Reading, after: _Reading, tally: Tally) -> Slice:
    jobs = after.done - before.done
    assert jobs > 0, "nothing was done in a whole slice"
    server = sum(spent - before.server.get(pid, 0) for pid, spent in after.server.items())
    waits = sorted(1000 * wait for wait in tally.waits[before.waits : after.waits])
    return Slice(
        rate=jobs / (after.at - before.at),
        server_cpu=server / 1000 / jobs,
        client_cpu=1_000_000 * (after.client - before.client) / jobs,
        p50=waits[len(waits) // 2] if waits else None,
        p99=waits[int(0.99 * len(waits))] if waits else None,
    )


async def _measured(contender: Contender, depth: int, workers: int, plan: Plan) -> Slice:
    async with contender.working(workers) as tally, _fed(contender.store, depth, tally) as connection:
        # Everybody warms up for as long, however long it took to connect.
        await asyncio.wait_for(tally.begun.wait(), BEGIN_SECONDS)
        await asyncio.sleep(plan.warm_up)
        before = await _reading(connection, tally)
        await asyncio.sleep(plan.seconds)
        after = await _reading(connection, tally)
    return _between(before, after, tally)


def one_slice(contender: Contender, depth: int, workers: int, plan: Plan) -> Slice:
    contender.store.fill_to(depth + (reserve(depth) if contender.store.fed else 0))
    gc.collect()
    with asyncio.Runner(loop_factory=contender.loop_factory) as runner:
        measured = runner.run(_measured(contender, depth, workers, plan))
    print(f"    {contender.name:<42} {workers:>3} on {depth:>9,}: {measured.rate:>8,.0f}/s", flush=True)
    return measured


def median_of(slices: Sequence[Slice]) -> Slice:
    """The median of each figure by itself."""
    p50 = [one.p50 for one in slices if one.p50 is not None]
    p99 = [one.p99 for one in slices if one.p99 is not None]
    return Slice(
        rate=statistics.median(one.rate for one in slices),
        server_cpu=statistics.median(one.server_cpu for one in slices),
        client_cpu=statistics.median(one.client_cpu for one in slices),
        p50=statistics.median(p50) if p50 else None,
        p99=statistics.median(p99) if p99 else None,
    )


def in_turns(contenders: Sequence[Contender], depth: int, workers: int, plan: Plan) -> dict[str, Slice]:
    """The contenders one after the other, and all of them again: whatever disturbs the machine disturbs all."""
    taken: dict[str, list[Slice]] = {contender.name: [] for contender in contenders}
    for _ in range(plan.turns):
        for contender in contenders:
            taken[contender.name].append(one_slice(contender, depth, workers, plan))
    return {name: median_of(slices) for name, slices in taken.items()}

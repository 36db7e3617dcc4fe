"""Claim and complete, everybody side by side, at every depth and with every number of workers."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.queue import ceiling, ours, with_pgqueuer, with_procrastinate
from bench.queue.plan import Plan
from bench.queue.slices import Contender, Slice, in_turns
from bench.queue.stores import database
from bench.queue.told import Found, Limit, Table, number

from agent_console.database.embedded import EmbeddedServer

LIMITED_DEPTHS = (100_000, 1_000_000)
LIMITED_WORKERS = 32
LATENCY_WORKERS = 8
DEEP, SHALLOW = 1_000_000, 1_000

RATES_MEANING = """\
Jobs per second, and in brackets the ratio to the ceiling. A job is claimed and completed, each with its
event row. At least so many jobs are queued at every moment: when a slice begins there are some more, and
a connection of its own adds what is missing. Peers are counted when their function is called, ours when
the completion was answered. The ceiling is one UPDATE a step by primary key, from the same number of
psycopg connections."""
LATENCY_MEANING = """\
Milliseconds from asking to the answer, in the process that asks. In one call: complete what is held and
claim the next. Apart: the claim alone."""
COST_MEANING = """\
Microseconds of processor time a job: of the connections that serve the workers, and of the process the
workers are in (/proc/*/schedstat and process_time). What feeds the queue is left out."""
BEST_MEANING = """\
Jobs per second with the number of workers that suits each best, and in brackets how many times as fast
ours is, gathered, at its own best."""


@dataclass(frozen=True)
class At:
    depth: int
    workers: int


Rates = dict[At, dict[str, Slice]]


def measure(server: EmbeddedServer, plan: Plan) -> Found:
    rates: Rates = {}
    for depth in plan.depths:
        with ExitStack() as leaving:
            contenders = enter(server, leaving)
            for workers in plan.workers:
                rates[At(depth, workers)] = in_turns(contenders, depth, workers, plan)
    limits = (*rate_limits(rates), *latency_limits(rates), *cost_limits(rates))
    return Found((*(_rates_table(rates, plan, depth) for depth in plan.depths), *_others(rates)), limits)


def enter(server: EmbeddedServer, leaving: ExitStack) -> list[Contender]:
    """Everybody, each in a new database."""
    team = ours.settle(leaving.enter_context(database(server, "bench_ours")))
    return [
        ceiling.ceiling(leaving.enter_context(database(server, "bench_ceiling"))),
        ours.gathered(team),
        ours.one_by_one(team),
        ours.two_calls(team),
        *with_procrastinate.procrastinate(leaving.enter_context(database(server, "bench_procrastinate"))),
        *with_pgqueuer.pgqueuer(leaving.enter_context(database(server, "bench_pgqueuer"))),
    ]


def best_procrastinate(found: dict[str, Slice]) -> float:
    return max(found[with_procrastinate.FLEET].rate, found[with_procrastinate.ONE_WORKER].rate)


def rate_limits(rates: Rates) -> Iterator[Limit]:
    for at, found in rates.items():
        if at.depth not in LIMITED_DEPTHS or at.workers != LIMITED_WORKERS:
            continue
        gathered, apart = found[ours.GATHERED].rate, found[ours.ONE_BY_ONE].rate
        where = f"{at.workers} workers, {at.depth:,} queued"
        peer = best_procrastinate(found)
        one, ten = found[with_pgqueuer.ONE_EACH].rate, found[with_pgqueuer.TEN_EACH].rate
        yield Limit(f"one by one, to Procrastinate ({where})", apart / peer, 3.5)
        yield Limit(f"one by one, to PgQueuer one by one ({where})", apart / one, 1.5)
        yield Limit(f"gathered, to Procrastinate ({where})", gathered / peer, 12)
        yield Limit(f"gathered, to PgQueuer in tens ({where})", gathered / ten, 1.5)
        yield Limit(f"gathered, to the ceiling ({where})", gathered / found[ceiling.NAME].rate, 0.5)


def latency_limits(rates: Rates) -> Iterator[Limit]:
    for name in (ours.GATHERED, ours.TWO_CALLS, ours.ONE_BY_ONE):
        found = rates.get(At(DEEP, LATENCY_WORKERS), {}).get(name)
        if found is not None and found.p99 is not None:
            yield Limit(
                f"claim p99, {name} ({LATENCY_WORKERS} workers, {DEEP:,} queued)", found.p99, 20, False, " ms"
            )


def cost_limits(rates: Rates) -> Iterator[Limit]:
    few, many = rates.get(At(SHALLOW, LIMITED_WORKERS)), rates.get(At(DEEP, LIMITED_WORKERS))
    if few and many:
        growth = many[ours.GATHERED].cpu / few[ours.GATHERED].cpu
        yield Limit(f"cost per job, gathered, at {DEEP:,} to {SHALLOW:,} queued", growth, 1.5, at_least=False)


def _rates_table(rates: Rates, plan: Plan, depth: int) -> Table:
    at = [At(depth, workers) for workers in plan.workers]
    names = list(rates[at[0]])

    def cell(place: At, name: str) -> str:
        rate = rates[place][name].rate
        return f"{rate:,.0f} ({rate / rates[place][ceiling.NAME].rate:.2f})"

    return Table(
        title=f"Claim and complete, {depth:,} queued",
        meaning=RATES_MEANING,
        columns=("jobs/s (to the ceiling)", *(_workers(place) for place in at)),
        rows=tuple((name, *(cell(place, name) for place in at)) for name in names),
    )


def _workers(at: At) -> str:
    return f"{at.workers} worker{'s' if at.workers > 1 else ''}"


def _others(rates: Rates) -> Iterator[Table]:
    yield Table(
        title="How long a claim takes",
        meaning=LATENCY_MEANING,
        columns=("p50 / p99 in ms", *(_place(at) for at in rates)),
        rows=tuple(
            (name, *(f"{number(found[name].p50, 1)} / {number(found[name].p99, 1)}" for found in rates.values()))
            for name in (ours.GATHERED, ours.TWO_CALLS, ours.ONE_BY_ONE)
        ),
    )
    most = max(at.workers for at in rates)
    deepest = [at for at in rates if at.workers == most]
    yield Table(
        title=f"What a job costs, {most} workers",
        meaning=COST_MEANING,
        columns=("µs a job: server + client", *(f"{at.depth:,} queued" for at in deepest)),
        rows=tuple((name, *_costs(rates, deepest, name)) for name in next(iter(rates.values()))),
    )
    yield _best_numbers(rates)


def _place(at: At) -> str:
    return f"{at.workers} on {at.depth:,}"


def _costs(rates: Rates, places: Sequence[At], name: str) -> Iterator[str]:
    for at in places:
        found = rates[at][name]
        yield f"{found.server_cpu:,.0f} + {found.client_cpu:,.0f}"


def _best_numbers(rates: Rates) -> Table:
    """Some queues are at their best with fewer workers; nobody should be judged by a bad number of them."""
    depths = list(dict.fromkeys(at.depth for at in rates))
    names = list(next(iter(rates.values())))

    def best(depth: int, name: str) -> tuple[float, int]:
        return max((found[name].rate, at.workers) for at, found in rates.items() if at.depth == depth)

    def cell(depth: int, name: str) -> str:
        rate, workers = best(depth, name)
        return f"{rate:,.0f} with {workers} ({best(depth, ours.GATHERED)[0] / rate:.1f})"

    return Table(
        title="Everybody at their best",
        meaning=BEST_MEANING,
        columns=("jobs/s with n workers (ours to it)", *(f"{depth:,} queued" for depth in depths)),
        rows=tuple((name, *(cell(depth, name) for depth in depths)) for name in names),
    )

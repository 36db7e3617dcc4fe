"""Claim and complete while something else goes on: an old snapshot, a long history, consoles that watch."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from bench.queue import ours, with_pgqueuer, with_procrastinate
from bench.queue.plan import Plan
from bench.queue.slices import Contender, Slice, median_of, one_slice
from bench.queue.stores import database
from bench.queue.told import Found, Limit, Table
from bench.queue.watching import READY

from agent_console.database.embedded import EmbeddedServer

OUR_MINUTES = 2
LIMITED_DEPTHS = (100_000, 1_000_000)
REPOSITORY = Path(__file__).parents[2]

SNAPSHOT_MEANING = """\
Jobs per second in the last slice of a time of uninterrupted work ({held:g} s): without anything, and
while another connection holds a repeatable read transaction open from before the work began, so that
nothing that was claimed in that time can be cleaned up. {workers} workers."""
FINISHED_MEANING = """\
Jobs per second with {workers} workers and {depth:,} queued: in a database with nothing else in it, and
in one with {finished:,} jobs that were finished before."""
CONSOLES_MEANING = """\
Jobs per second with {workers} workers and {depth:,} queued: with nobody watching, and with three
consoles in another process, each asking for pool.status, queue.depth and a page of jobs.list once a
second."""

Meanwhile = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Pair:
    """The same work without and with what disturbs it."""

    name: str
    without: Slice
    disturbed: Slice

    @property
    def ratio(self) -> float:
        return self.disturbed.rate / self.without.rate

    @property
    def cells(self) -> tuple[str, ...]:
        return self.name, f"{self.without.rate:,.0f}", f"{self.disturbed.rate:,.0f}", f"{self.ratio:.2f}"


def pair_in_turns(
    name: str,
    calm: Contender,
    disturbed: Contender,
    meanwhile: Meanwhile,
    depth: int,
    plan: Plan,
) -> Pair:
    taken: tuple[list[Slice], list[Slice]] = ([], [])
    for _ in range(plan.turns):
        taken[0].append(one_slice(calm, depth, plan.most_workers, plan))
        with meanwhile():
            taken[1].append(one_slice(disturbed, depth, plan.most_workers, plan))
    return Pair(name, median_of(taken[0]), median_of(taken[1]))


def _table(title: str, meaning: str, disturbance: str, pairs: Sequence[Pair]) -> Table:
    return Table(title, meaning, ("jobs/s", "without", disturbance, "ratio"), tuple(pair.cells for pair in pairs))


@contextmanager
def snapshot_held(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select from pg_class limit 1")
        yield
        connection.rollback()


def snapshot(server: EmbeddedServer, plan: Plan) -> Found:
    """The snapshot is there before the work begins, and the slice that counts is the last of the time."""
    lasting = replace(plan, warm_up=plan.held - plan.seconds)
    pairs: list[Pair] = []
    limits: list[Limit] = []
    for depth in (depth for depth in plan.depths if depth >= plan.usual_depth):
        with database(server, "bench_ours") as dsn:
            own = ours.gathered(ours.settle(dsn))
            pairs.append(_with_snapshot(own, depth, replace(lasting, turns=min(OUR_MINUTES, plan.turns))))
        if depth in LIMITED_DEPTHS:
            limits.append(Limit(f"gathered, with a snapshot held open ({depth:,} queued)", pairs[-1].ratio, 0.8))
    pairs.extend(_peers_with_snapshot(server, replace(lasting, turns=1)))
    meaning = SNAPSHOT_MEANING.format(held=plan.held, workers=plan.most_workers)
    return Found((_table("With a snapshot held open", meaning, "held open", pairs),), tuple(limits))


def _with_snapshot(contender: Contender, depth: int, plan: Plan) -> Pair:
    name = f"{contender.name}, {depth:,} queued"
    return pair_in_turns(name, contender, contender, lambda: snapshot_held(contender.store.dsn), depth, plan)


def _peers_with_snapshot(server: EmbeddedServer, plan: Plan) -> Iterator[Pair]:
    with database(server, "bench_procrastinate") as dsn:
        fleet, _ = with_procrastinate.procrastinate(dsn)
        yield _with_snapshot(fleet, plan.usual_depth, plan)
    with database(server, "bench_pgqueuer") as dsn:
        _, in_tens = with_pgqueuer.pgqueuer(dsn)
        yield _with_snapshot(in_tens, plan.usual_depth, plan)


def finished(server: EmbeddedServer, plan: Plan) -> Found:
    with ExitStack() as leaving:
        calm = ours.settle(leaving.enter_context(database(server, "bench_ours")))
        long_lived = ours.settle(leaving.enter_context(database(server, "bench_finished")))
        long_lived.add_finished(plan.finished)
        sides = (ours.gathered(calm), ours.gathered(long_lived))
        pair = pair_in_turns(ours.GATHERED, *sides, nullcontext, plan.usual_depth, plan)
    meaning = FINISHED_MEANING.format(workers=plan.most_workers, depth=plan.usual_depth, finished=plan.finished)
    return Found((_table("With finished jobs beside", meaning, f"{plan.finished:,} finished", [pair]),))


@contextmanager
def consoles_watching(dsn: str) -> Iterator[None]:
    """In a process of their own, which leaves when its input closes."""
    words = [sys.executable, "-m", "bench.queue.watching", dsn]
    with subprocess.Popen(
        words, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as consoles:
        assert consoles.stdin is not None
        assert consoles.stdout is not None
        assert consoles.stdout.readline().strip() == READY, "the consoles ended before they were ready"
        yield
        consoles.stdin.close()
        assert consoles.wait(timeout=60) == 0, "a console failed"


def consoles(server: EmbeddedServer, plan: Plan) -> Found:
    with database(server, "bench_ours") as dsn:
        team = ours.settle(dsn)
        own = ours.gathered(team)
        pair = pair_in_turns(own.name, own, own, lambda: consoles_watching(team.app_dsn), plan.usual_depth, plan)
    meaning = CONSOLES_MEANING.format(workers=plan.most_workers, depth=plan.usual_depth)
    return Found((_table("With three consoles watching", meaning, "watched", [pair]),))

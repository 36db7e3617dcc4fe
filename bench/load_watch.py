"""What is looked at every ten seconds of `bench.load`, and what of it must not grow."""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg
from bench.fleet_stage import Fleet, Processes
from bench.load_consoles import Consoles
from bench.machine_load import Share, parent_of

LOOK_SECONDS = 10.0
TOLD_SECONDS = 60.0
# What grows as history grows is left out of what has to be flat: jobs, events, messages and acts are kept. How
# much is kept for one job must not grow, though: dead rows that nobody cleans up would make it more and more.
LOOKED_AT = """
    select (select count(*) from pg_stat_activity where backend_type = 'client backend')::float8 as connections,
           pg_database_size(current_database()) / 1e6::float8 as database,
           (select sum(pg_total_relation_size(relid)) / 1e6 from pg_stat_user_tables
             where relname in ('agent_runtime', 'agents', 'lanes', 'sessions', 'duty_rounds', 'queue_moves',
                               'queue_counts', 'queue_tallies', 'pool_counts',
                               'audit_heads'))::float8 as rewritten,
           (select sum(n_dead_tup) from pg_stat_user_tables)::float8 as dead,
           (select pg_total_relation_size('jobs') / 1e3 / greatest(1000, count(*)) from jobs)::float8 as each_job,
           (select count(*) from jobs where finished_at is null)::float8 as waiting
"""


@dataclass(frozen=True)
class Sample:
    minutes: float
    server: float
    agents: float
    consoles: float
    connections: float
    database: float
    rewritten: float
    dead: float
    each_job: float
    waiting: float
    ours: float
    others: float


# What must not grow, with how much is a change and not noise.
FLAT = {
    "server": 15.0,
    "agents": 40.0,
    "consoles": 80.0,
    "connections": 12.0,
    "rewritten": 8.0,
    "dead": 60_000.0,
    "each_job": 0.3,
}
MEANING = {
    "server": ("memory of the server", "MB"),
    "agents": ("memory of the six processes of agents that are never killed", "MB"),
    "consoles": ("memory of the consoles that are never killed", "MB"),
    "connections": ("connections to PostgreSQL", ""),
    "rewritten": ("tables that are rewritten all the time", "MB"),
    "dead": ("dead rows not yet cleaned up", ""),
    "each_job": ("table of the jobs, for each job that it keeps", "kB"),
    "waiting": ("jobs not ended yet", ""),
    "database": ("the database, all of its history", "MB"),
    "others": ("cores used by others on this machine", ""),
}


def grown(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """What it was at most in the second third of the time, and in the last."""
    third = max(1, len(samples) // 3)
    values = [float(getattr(sample, name)) for sample in samples]
    return max(values[third : 2 * third], default=0.0), max(values[2 * third :], default=0.0)


def hourly(samples: Sequence[Sample], name: str) -> float:
    """By how much it grows in an hour, by the straight line that fits the last two thirds best."""
    late = samples[len(samples) // 3 :]
    if len({sample.minutes for sample in late}) < 2:
        return 0.0
    return (
        statistics.linear_regression([one.minutes for one in late], [getattr(one, name) for one in late]).slope
        * 60
    )


@dataclass
class Watched:
    stage: Fleet
    consoles: Consoles
    samples: list[Sample] = field(default_factory=list)
    faults: list[tuple[float, str]] = field(default_factory=list)
    missed: int = 0
    """Looks that found no database: it is broken on purpose."""
    kept: Path | None = None
    """A file for every look as it is taken: who is killed after an hour has still seen something."""

    @asynccontextmanager
    async def during(self, processes: Processes, began: float) -> AsyncIterator[None]:
        share = Share({os.getpid(), self._postmaster()})

        async def look() -> None:
            told_at = began
            while True:
                try:
                    self._keep(await asyncio.to_thread(self._sample, processes, share, began))
                except psycopg.OperationalError:
                    self.missed += 1
                if time.monotonic() >= told_at + TOLD_SECONDS and self.samples:
                    told_at += TOLD_SECONDS
                    print(self._line(), file=sys.stderr, flush=True)
                await asyncio.sleep(LOOK_SECONDS)

        task = asyncio.create_task(look())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _keep(self, sample: Sample) -> None:
        self.samples.append(sample)
        if self.kept is not None:
            with self.kept.open("a") as kept:
                kept.write(f"{json.dumps(asdict(sample))}\n")

    def _line(self) -> str:
        last = self.samples[-1]
        return (
            f"{last.minutes:>5.1f} min  server {last.server:.0f} MB, agents {last.agents:.0f} MB,"
            f" consoles {last.consoles:.0f} MB, {last.connections:.0f} connections, {last.waiting:.0f} jobs open,"
            f" {last.dead:,.0f} dead rows; {last.ours:.1f} cores ours, {last.others:.1f} others'"
        )

    def _postmaster(self) -> int:
        with psycopg.connect(self.stage.dsn) as connection:
            return parent_of(connection.info.backend_pid)

    def _sample(self, processes: Processes, share: Share, began: float) -> Sample:
        with psycopg.connect(self.stage.dsn, autocommit=True) as connection:
            ((connections, database, rewritten, dead, each_job, waiting),) = connection.execute(
                LOOKED_AT
            ).fetchall()
        ours, others = share.since_last()
        return Sample(
            minutes=(time.monotonic() - began) / 60,
            server=processes.server_megabytes(),
            agents=processes.agents_megabytes(),
            consoles=self.consoles.megabytes(),
            connections=float(connections),
            database=float(database),
            rewritten=float(rewritten),
            dead=float(dead),
            each_job=float(each_job),
            waiting=float(waiting),
            ours=ours,
            others=others,
        )

"""The fleet proof for an hour with faults on and ten consoles attached; what is lost, or grows, is exit code 1.

    python -m bench.load [--minutes 60] [--consoles 10]

The fleet of `bench.fleet`: 200 agents and 1,020 jobs a minute through one server. Ten real consoles, each in a
terminal of its own, walk through all panes all the time. Every few minutes something breaks: the server is killed,
a process of agents is killed, every connection of the server is cut, a console is killed; each comes back. Memory,
connections and the size of what is rewritten all the time are looked at every ten seconds, drawn into
docs/load.svg and judged: the last third of the time against the second. The report goes into docs/proof.md.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle

import psycopg
from bench import fleet
from bench.faults_report import PROOF, InAll, write_part
from bench.fleet_stage import AGENTS, Fleet, Processes, settled, staged
from bench.load_consoles import Consoles
from bench.plots import Plot, drawn

LOOK_SECONDS = 10.0
FAULT_MINUTES = 4.0
# Those whose process is never killed must not lose a lease, so it is always one of these.
KILLED_PLACES = (0, 1)
# What grows as history grows is left out of what has to be flat: jobs, events, messages and acts are kept.
LOOKED_AT = """
    select (select count(*) from pg_stat_activity where backend_type = 'client backend')::float8 as connections,
           pg_database_size(current_database()) / 1e6::float8 as database,
           (select sum(pg_total_relation_size(relid)) / 1e6 from pg_stat_user_tables
             where relname in ('agent_runtime', 'agents', 'lanes', 'sessions', 'duties'))::float8 as rewritten,
           (select sum(n_dead_tup) from pg_stat_user_tables)::float8 as dead,
           (select count(*) from jobs where finished_at is null)::float8 as waiting
"""
CUT = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'agent-console'"


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
    waiting: float


@dataclass
class Watched:
    samples: list[Sample] = field(default_factory=list)
    faults: list[tuple[float, str]] = field(default_factory=list)


# What must not grow, with how much is a change and not noise.
FLAT = {"server": 15.0, "agents": 60.0, "consoles": 100.0, "connections": 12.0, "rewritten": 8.0, "dead": 60_000.0}
MEANING = {
    "server": ("memory of the server", "MB"),
    "agents": ("memory of the agents' processes", "MB"),
    "consoles": ("memory of the consoles", "MB"),
    "connections": ("connections to PostgreSQL", ""),
    "rewritten": ("tables that are rewritten all the time", "MB"),
    "dead": ("dead rows not yet cleaned up", ""),
    "waiting": ("jobs not ended yet", ""),
    "database": ("the database, all of its history", "MB"),
}


def grown(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """What it was at most in the second third of the time, and in the last."""
    third = max(1, len(samples) // 3)
    values = [float(getattr(sample, name)) for sample in samples]
    return max(values[third : 2 * third], default=0.0), max(values[2 * third :], default=0.0)


@dataclass
class Load:
    stage: Fleet
    consoles: Consoles
    fault_seconds: float
    watched: Watched = field(default_factory=Watched)

    async def disturb(self, processes: Processes, story: fleet.Story, began: float) -> None:
        """Watches all the time, and breaks something every few minutes, but for the last of them."""
        async with self._watching(processes, began):
            places, due = cycle(KILLED_PLACES), self.fault_seconds / 2
            for kind in cycle(("the server", "agents", "connections", "a console")):
                if due > story.seconds - 60:
                    break
                await asyncio.sleep(max(0.0, began + due - time.monotonic()))
                match kind:
                    case "the server":
                        await fleet.server_is_killed(processes, story)
                    case "agents":
                        await asyncio.to_thread(processes.kill_agents, next(places))
                    case "connections":
                        await self._cut(story)
                    case _:
                        self.consoles.kill_one()
                minutes = (time.monotonic() - began) / 60
                self.watched.faults.append((minutes, kind))
                print(f"{minutes:>5.1f} min  {kind}: killed or cut, and back", flush=True)
                due += self.fault_seconds
            await asyncio.sleep(max(0.0, began + story.seconds - time.monotonic()))

    async def _cut(self, story: fleet.Story) -> None:
        cut_at = fleet.now()
        self.stage.number(CUT)
        story.server_away.append((cut_at, fleet.now()))

    @asynccontextmanager
    async def _watching(self, processes: Processes, began: float) -> AsyncIterator[None]:
        async def look() -> None:
            while True:
                self.watched.samples.append(await asyncio.to_thread(self._sample, processes, began))
                await asyncio.sleep(LOOK_SECONDS)

        task = asyncio.create_task(look())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _sample(self, processes: Processes, began: float) -> Sample:
        with psycopg.connect(self.stage.dsn, autocommit=True) as connection:
            ((connections, database, rewritten, dead, waiting),) = connection.execute(LOOKED_AT).fetchall()
        return Sample(
            minutes=(time.monotonic() - began) / 60,
            server=processes.server_megabytes(),
            agents=processes.agents_megabytes(),
            consoles=self.consoles.megabytes(),
            connections=float(connections),
            database=float(database),
            rewritten=float(rewritten),
            dead=float(dead),
            waiting=float(waiting),
        )


def told(load: Load, story: fleet.Story, problems: Sequence[str], minutes: float) -> str:
    samples, faults = load.watched.samples, load.watched.faults
    plots = [
        Plot(title, unit, [(one.minutes, getattr(one, name)) for one in samples], [at for at, _ in faults])
        for name, (title, unit) in MEANING.items()
    ]
    PROOF.with_name("load.svg").write_text(drawn(plots))
    rows = [f"| {MEANING[name][0]} | {now:,.0f} | {then:,.0f} |" for name, (now, then) in _thirds(samples)]
    kinds = ", ".join(f"{sum(kind == one for _, kind in faults)} × {one}" for one in dict(_turned(faults)))
    consoles = load.consoles.count
    lines = (
        f"{len(story.created):,} jobs in {minutes:g} minutes by {AGENTS} agents, {consoles} consoles attached.",
        f"Broken meanwhile, and back by themselves: {kinds}.",
        f"Lost or wrong: {'; '.join(problems) or '0'}.",
        "",
        "| at most, in | the second third | the last third |",
        "|---|--:|--:|",
        *rows,
        "",
        "![Memory, connections and sizes over the time; red lines are faults](load.svg)",
        "",
        f"Again: `python -m bench.load --minutes {minutes:g} --consoles {consoles}`",
    )
    return "\n".join(lines)


def _turned(faults: Sequence[tuple[float, str]]) -> Iterator[tuple[str, float]]:
    return ((kind, at) for at, kind in faults)


def _thirds(samples: Sequence[Sample]) -> Iterator[tuple[str, tuple[float, float]]]:
    return ((name, grown(samples, name)) for name in FLAT)


@contextmanager
def loaded(consoles: int, fault_minutes: float) -> Iterator[tuple[Load, Processes]]:
    with staged() as dsn, settled(dsn) as (stage, processes), Consoles.opened(stage, consoles) as opened:
        yield Load(stage, opened, fault_minutes * 60), processes


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--consoles", type=int, default=10)
    asked.add_argument("--fault-every", type=float, default=FAULT_MINUTES, help="minutes between two faults")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/ as it is")
    given = asked.parse_args()
    with loaded(given.consoles, given.fault_every) as (load, processes):
        story, drain_seconds, late = asyncio.run(
            fleet.lived(load.stage, processes, given.minutes * 60, load.disturb)
        )
        problems = fleet.told(load.stage, story, drain_seconds, late)
    for name, (then, now) in _thirds(load.watched.samples):
        if now > then + FLAT[name]:
            problems.append(f"{MEANING[name][0]} grew from {then:,.0f} to {now:,.0f}")
    if load.consoles.ended:
        problems.append(f"{load.consoles.ended} consoles ended by themselves")
    report = told(load, story, problems, given.minutes)
    print(f"\n{report}")
    if not given.no_report:
        what = f"jobs through a fleet with faults on and {given.consoles} consoles, in {given.minutes:g} minutes"
        in_all = InAll(what, len(story.created), len(problems))
        write_part("load", "Load, for long, with faults", report, in_all)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

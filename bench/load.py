"""The fleet proof for an hour with faults on and ten consoles attached; what is lost, or grows, is exit code 1.

    python -m bench.load [--minutes 60] [--consoles 10]

The fleet of `bench.fleet`: 200 agents and 1,020 jobs a minute through one server. Ten real consoles, each in a
terminal of its own, walk through all panes all the time. Every few minutes something breaks, and comes back: a
process of agents is killed, every connection of the server is cut, a console is killed, and in the first third of
the time the server is killed and PostgreSQL crashes, too; not later, since what has just begun has not grown yet.
Memory, connections and the size of what is rewritten all the time are looked at every ten seconds, drawn into
docs/load.svg and judged: the last third of the time against the second. The report goes into docs/proof.md.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from textwrap import fill

from bench import fleet
from bench.faults_report import PROOF, WIDTH, InAll, commit, write_part
from bench.fleet_stage import AGENTS, Fleet, Processes, settled, staged
from bench.load_consoles import Consoles
from bench.load_watch import FLAT, MEANING, Watched, grown, hourly
from bench.plots import Plot, drawn
from bench.stopping import ends_when_told

FAULT_MINUTES = 2.5
LAST_SECONDS = 60.0
# Those whose process is never killed must not lose a lease, so it is always one of these.
KILLED_PLACES = (0, 1)
SERVER, AGENTS_GONE, CONNECTIONS, CONSOLE, DATABASE = (
    "the server is killed",
    "agents are killed",
    "every connection is cut",
    "a console is killed",
    "PostgreSQL crashes",
)
EARLY, LATE = (SERVER, AGENTS_GONE, CONNECTIONS, CONSOLE, DATABASE), (AGENTS_GONE, CONNECTIONS, CONSOLE)
CUT = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'agent-console'"
ONE_OF_THEM = "select min(pid) from pg_stat_activity where application_name = 'agent-console'"
ANSWERS_AGAIN_SECONDS = 60.0


def planned(seconds: float, every: float) -> Iterator[tuple[float, str]]:
    """When what breaks; the last minute is for coming back."""
    early, late, due = cycle(EARLY), cycle(LATE), every / 2
    while due <= seconds - LAST_SECONDS:
        yield due, next(early if due < seconds / 3 else late)
        due += every


@dataclass
class Load:
    stage: Fleet
    consoles: Consoles
    fault_seconds: float
    watched: Watched

    async def disturb(self, processes: Processes, story: fleet.Story, began: float) -> None:
        """Watches all the time, and breaks something every few minutes."""
        processes.young.update(KILLED_PLACES)
        places = cycle(KILLED_PLACES)
        async with self.watched.during(processes, began):
            for due, kind in planned(story.seconds, self.fault_seconds):
                await asyncio.sleep(max(0.0, began + due - time.monotonic()))
                at = time.monotonic()
                await self._break(kind, processes, story, places)
                self.watched.faults.append(((at - began) / 60, kind))
                print(f"{(at - began) / 60:>5.1f} min  {kind}", file=sys.stderr, flush=True)
            await asyncio.sleep(max(0.0, began + story.seconds - time.monotonic()))

    async def _break(self, kind: str, processes: Processes, story: fleet.Story, places: Iterator[int]) -> None:
        if kind == SERVER:
            await fleet.server_is_killed(processes, story)
        elif kind == AGENTS_GONE:
            await asyncio.to_thread(processes.kill_agents, next(places))
        elif kind == CONNECTIONS:
            await self._cut(story)
        elif kind == DATABASE:
            await self._crash(story)
        else:
            self.consoles.kill_one()

    async def _cut(self, story: fleet.Story) -> None:
        cut_at = fleet.now()
        await asyncio.to_thread(self.stage.number, CUT)
        story.server_away.append((cut_at, fleet.now()))

    async def _crash(self, story: fleet.Story) -> None:
        """One process of it is killed: it ends all others, and starts again from its log."""
        crashed_at = fleet.now()
        os.kill(await asyncio.to_thread(self.stage.number, ONE_OF_THEM), signal.SIGKILL)
        await asyncio.to_thread(self.stage.answers_again, ANSWERS_AGAIN_SECONDS)
        story.server_away.append((crashed_at, fleet.now()))


def told(load: Load, story: fleet.Story, problems: Sequence[str], summary: str, minutes: float) -> str:
    watched = load.watched
    rows = []
    for name in FLAT:
        (meaning, unit), (then, now), slope = (
            MEANING[name],
            grown(watched.samples, name),
            hourly(watched.samples, name),
        )
        places = 0 if then >= 10 else 1
        rows.append(
            f"| {meaning}{unit and ', ' + unit} | {then:,.{places}f} | {now:,.{places}f} | {slope:+,.{places}f} |"
        )
    counted = Counter(kind for _, kind in watched.faults)
    kinds = ", ".join(f"{kind} ({count})" for kind, count in counted.items())
    others = [sample.others for sample in watched.samples]
    ours = [sample.ours for sample in watched.samples]
    words = (
        f"{len(story.created):,} jobs in {minutes:g} minutes by {AGENTS} agents, {load.consoles.count} consoles"
        f" attached. Broken meanwhile, {len(watched.faults)} times, and back without a hand: {kinds}."
        f" All of this used {statistics.mean(ours):.1f} cores on average; others on the same machine used"
        f" {statistics.mean(others):.1f} meanwhile, at most {max(others):.1f} for ten seconds."
    )
    lines = (
        fill(words, WIDTH),
        "",
        fill(summary, WIDTH),
        "",
        fill(f"Lost or wrong: {'; '.join(problems) or '0'}.", WIDTH),
        "",
        "| at most, in | the second third | the last third | an hour's growth, by their slope |",
        "|---|--:|--:|--:|",
        *rows,
        "",
        "![Memory, connections and sizes over the time; each dashed line is a fault](load.svg)",
        "",
        f"Again: `python -m bench.load --minutes {minutes:g} --consoles {load.consoles.count}`",
    )
    return "\n".join(lines)


def picture(watched: Watched, minutes: float) -> str:
    plots = [
        Plot(title, unit, [(one.minutes, getattr(one, name)) for one in watched.samples])
        for name, (title, unit) in MEANING.items()
    ]
    title = f"{AGENTS} agents and {watched.consoles.count} consoles for {minutes:g} minutes"
    return drawn(f"{title}, {datetime.now(UTC):%Y-%m-%d}, commit {commit()}", plots, watched.faults)


@contextmanager
def loaded(consoles: int, fault_minutes: float) -> Iterator[tuple[Load, Processes]]:
    with staged() as dsn, settled(dsn) as (stage, processes), Consoles.opened(stage, consoles) as opened:
        yield Load(stage, opened, fault_minutes * 60, Watched(stage, opened)), processes


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--consoles", type=int, default=10)
    asked.add_argument("--fault-every", type=float, default=FAULT_MINUTES, help="minutes between two faults")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/ as it is")
    asked.add_argument("--keep", type=Path, help="a folder for what was seen: samples, picture, the server's log")
    given = asked.parse_args()
    commit()
    with loaded(given.consoles, given.fault_every) as (load, processes):
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            load.watched.kept = given.keep / "samples.jsonl"
        story, drain_seconds, late = asyncio.run(
            fleet.lived(load.stage, processes, given.minutes * 60, load.disturb)
        )
        if given.keep:
            keep(given.keep, load.watched, processes, given.minutes)
        summary, problems = fleet.told(load.stage, story, drain_seconds, late)
        problems += load.consoles.problems()
    for name in FLAT:
        then, now = grown(load.watched.samples, name)
        if now > then + FLAT[name]:
            problems.append(f"{MEANING[name][0]} grew from {then:,.1f} to {now:,.1f}")
    report = told(load, story, problems, summary, given.minutes)
    print(f"\n{report}")
    if not given.no_report:
        PROOF.with_name("load.svg").write_text(picture(load.watched, given.minutes))
        what = f"jobs through a fleet with faults on and {given.consoles} consoles, in {given.minutes:g} minutes"
        in_all = InAll(what, len(story.created), len(problems))
        write_part("load", "Load, for long, with faults", report, in_all)
    return 1 if problems else 0


def keep(folder: Path, watched: Watched, processes: Processes, minutes: float) -> None:
    (folder / "faults.json").write_text(json.dumps(watched.faults))
    (folder / "server.log").write_bytes(processes.log.read_bytes())
    (folder / "load.svg").write_text(picture(watched, minutes))


if __name__ == "__main__":
    sys.exit(ends_when_told(main))

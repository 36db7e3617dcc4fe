"""Everything that can break is broken under a running fleet, again and again; whatever is lost is exit code 1.

    python -m bench.faults --rounds 200

Two real servers, two processes of agents, people who put in jobs, write, ask and decide by way of both, a console
in direct mode, all on one PostgreSQL, and at a random moment of every round one fault of
`tests/faults/inflicted.py`. A round is over when each server has taken a job that was done, every agent was heard,
and the console was told. Then the database itself is asked what is wrong. At the end every job has ended and all
of the audit trail is proved. What came of it is printed, and written into docs/proof.md.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from textwrap import fill

from bench.faults_disk import disk_runs_full
from bench.faults_report import WIDTH, InAll, Line, commit, table, write_part
from bench.machine_load import Share
from bench.stopping import ends_when_told
from tests.faults.agents import LEASE_SECONDS
from tests.faults.inflicted import FAULTS, Inflicting
from tests.faults.invariants import looked_at
from tests.faults.life import Life
from tests.faults.recovery import everybody_is_back, everything_is_done, proved
from tests.faults.world import faulty_world
from tests.support.clusters import reachable_folder

FAULT_SECONDS = 5.0
PAUSE_SECONDS = 0.1
MOMENT_SECONDS = 1.0
# What held them up is told, so that somebody can look.
SLOW_SECONDS = 10.0
STORY = "select created_at::time(1)::text, message from job_events where job_id = any(%s) order by job_id, seq"


@dataclass
class Run:
    times: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    back: dict[str, list[float]] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    damage: str = ""
    slow: list[str] = field(default_factory=list)
    """Who was back late, and what held everybody up."""


def in_turns(chance: random.Random) -> Iterator[str]:
    """Every kind as often as the others, never in the same order."""
    while True:
        yield from chance.sample([*FAULTS], len(FAULTS))


async def one_round(run: Run, name: str, inflicting: Inflicting) -> None:
    await asyncio.sleep(inflicting.chance.uniform(0, MOMENT_SECONDS))
    await FAULTS[name](inflicting)
    back = await everybody_is_back(inflicting.world, inflicting.life)
    run.back.setdefault(name, []).append(back.seconds)
    run.times[name] += 1
    found = looked_at(inflicting.world, inflicting.life.told)
    run.wrong[name] += found.total
    state = "" if found.total == 0 else f"  WRONG: {found}"
    print(f"{sum(run.times.values()):>5}  {name:<34}back after {back.seconds:5.1f} s{state}", flush=True)
    if back.seconds > SLOW_SECONDS:
        print(f"       {back}", flush=True)
        with inflicting.world.looking() as fleet:
            story = fleet.execute(STORY, back.jobs)
        for at, told in story:
            print(f"       {at}  {told}", flush=True)
        held = any("lease expired" in str(told) for _, told in story)
        why = "somebody who was gone held a job until its lease was over" if held else str(back)
        run.slow.append(f"{name}, {back.seconds:.1f} s ({why})")


async def lived(rounds: int, seed: int) -> Run:
    run, chance = Run(), random.Random(seed)
    with reachable_folder() as folder, faulty_world(folder) as world:
        async with Life(world, seed=seed, pause=PAUSE_SECONDS) as life:
            inflicting = Inflicting(world, life, chance, FAULT_SECONDS)
            await everybody_is_back(world, life)
            for name in [*islice(in_turns(chance), rounds)]:
                await one_round(run, name, inflicting)
            await everything_is_done(world, life)
            damage, unsealed = await proved(world)
        run.wrong["in the end"] = looked_at(world, life.told).total
        run.damage = str(damage or "") or (f"{unsealed} acts without a seal" if unsealed else "")
        told = life.told
        run.acknowledged = {
            "jobs": len(told.jobs),
            "messages": len(told.messages),
            "questions": len(told.asked),
            "decisions": len(told.decided),
        }
    return run


def lines_of(run: Run) -> list[Line]:
    return [
        Line(
            name,
            run.times[name],
            run.wrong[name],
            f"{max(run.back[name]):.1f} s, median {median(run.back[name]):.1f} s",
        )
        for name in FAULTS
        if run.times[name]
    ]


def told(run: Run, seed: int, disk: Line, took: str) -> str:
    counted = ", ".join(f"{count:,} {what}" for what, count in run.acknowledged.items())
    proof = run.damage or "proved from its first act to its last, every act sealed"
    command = f"`python -m bench.faults --rounds {run.times.total()} --seed {seed}`"
    words = (
        f"Acknowledged meanwhile: {counted}; lost of them: {run.wrong['in the end']}. The audit trail: {proof}."
        f" A lease lasts {LEASE_SECONDS} s here. Back only after more than {SLOW_SECONDS:.0f} s:"
        f" {'; '.join(run.slow) or 'never'}. {took}"
    )
    return f"{table([*lines_of(run), disk])}\n\n{fill(words, WIDTH)}\n\nAgain: {command}"


def main() -> int:
    asked = argparse.ArgumentParser(description="Break a running fleet, and see that nothing is lost.")
    asked.add_argument("--rounds", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/proof.md as it is")
    given = asked.parse_args()
    commit()
    began, share = time.monotonic(), Share({os.getpid()})
    disk = asyncio.run(disk_runs_full())
    run = asyncio.run(lived(given.rounds, given.seed))
    ours, others = share.since_last()
    took = (
        f"It took {(time.monotonic() - began) / 60:.0f} minutes and {ours:.1f} cores on average; others on the"
        f" same machine used {others:.1f} meanwhile."
    )
    report = told(run, given.seed, disk, took)
    print(f"\n{report}")
    if not given.no_report:
        lost = run.wrong.total() + disk.lost + bool(run.damage)
        what = f"a running fleet is broken in {len([*run.times]) + 1} ways"
        in_all = InAll(what, run.times.total() + disk.times, lost)
        write_part("faults", "Faults against a running fleet", report, in_all)
    return 1 if run.wrong.total() + disk.lost or run.damage else 0


if __name__ == "__main__":
    sys.exit(ends_when_told(main))

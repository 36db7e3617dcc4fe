"""Mutants: the code that decides is changed in many small ways, and each time some test has to notice.

    python -m bench.mutants
    python -m bench.mutants --part rules
    python -m bench.mutants --only deciding --all

bench/mutants.toml lists the files, the tests that are about each, and the mutants that nobody can notice, each
with the reason. No file is changed: see mutant_tries. One that survives and is not explained makes it exit code 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

from bench.breaking_rules import TREE, surroundings
from bench.faults_report import WIDTH, InAll, write_part

LISTED = Path(__file__).with_name("mutants.toml")
WANTED = "MUTANTS_WANTED"
SEED = 1
ALL = 1_000_000
KILLED, NOT_ONE = "killed", "no function"
PARTS = ("rules", "policy", "audit", "fences")

TEACHING = """
a file, in bench/mutants.toml:

  [[file]]
  part = "policy"                            rules, policy, audit or fences
  file = "src/agent_console/…/deciding.py"   Python, or SQL of a migration
  places = ["take_turn"]                     the functions; all of them, and all statements, when it is left out
  most = 40                                  a sample of so many; all of them when it is left out
  tests = ["tests/repository/…"]             the tests that are about it

a mutant that is no fault, below its file:

  [[file.explained]]
  mutant = "take_turn: for update -> left out"   as this program names it
  why = "…"                                      why nobody can notice it, or why it does no harm

When a mutant survives, write the test that kills it; explain it only if there can be none.
"""


@dataclass
class Looked:
    """How the mutants of one file went."""

    part: str
    file: str
    explained: Sequence[dict[str, str]]
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counted(self) -> Counter[str]:
        return Counter(str(one["outcome"]) for one in self.outcomes if one["outcome"] != NOT_ONE)

    @property
    def wrong(self) -> list[str]:
        """What is not as it should be: survivors, and whatever could not be tried."""
        return [
            f"{self.file}: {one['outcome']}: {one['mutant']} [{one.get('by', '')}]"
            for one in self.outcomes
            if one["outcome"] not in (KILLED, NOT_ONE)
        ]


def look_at(listed: dict[str, Any], most: int | None, seed: int) -> Looked:
    explained = listed.get("explained", [])
    looked = Looked(listed["part"], listed["file"], explained)
    with tempfile.TemporaryDirectory(prefix="ac-mutants-") as folder:
        report = Path(folder) / "report.json"
        wanted = {
            "file": listed["file"],
            "places": listed.get("places", []),
            "most": most or listed.get("most", ALL),
            "seed": seed,
            "known": [one["mutant"] for one in explained],
            "report": str(report),
        }
        tests = (
            "-q",
            "--tb=no",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-p",
            "bench.mutant_tries",
            *listed["tests"],
        )
        around = surroundings(TREE) | {WANTED: json.dumps(wanted)}
        subprocess.run((sys.executable, "-m", "pytest", *tests), cwd=TREE, env=around, check=False)
        said = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
        looked.outcomes = said or [{"mutant": "", "outcome": "nothing was tried"}]
    return looked


def table(looked: Iterable[Looked]) -> str:
    rows = ["| part | file | mutants | killed | survived | explained |", "|---|---|--:|--:|--:|--:|"]
    for one in looked:
        killed, explained, wrong = one.counted[KILLED], len(one.explained), len(one.wrong)
        total = killed + explained + wrong
        rows.append(f"| {one.part} | `{one.file}` | {total} | {killed} | {wrong} | {explained} |")
    return "\n".join(rows)


def told(part: str, looked: Sequence[Looked], minutes: float) -> str:
    killed = sum(one.counted[KILLED] for one in looked)
    explained = sum(len(one.explained) for one in looked)
    survived = sum(len(one.wrong) for one in looked)
    words = (
        f"{killed + explained + survived:,} mutants, {killed:,} killed, {survived} survived, {explained} explained"
        f" as no fault, in {minutes:.0f} minutes. A mutant is the code with one comparison, condition, constant,"
        " lock or statement changed. Each explained one stands in `bench/mutants.toml` with its reason."
    )
    return f"{table(looked)}\n\n{fill(words, WIDTH)}\n\nAgain: `python -m bench.mutants --part {part}`"


def main() -> int:
    asked = argparse.ArgumentParser(
        prog="python -m bench.mutants",
        description="Change the code that decides in many small ways, and see that a test notices each.",
        epilog=TEACHING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--part", choices=PARTS, action="append", help="only this part; may be repeated")
    asked.add_argument("--only", metavar="WORD", default="", help="files whose path has this word in it")
    asked.add_argument("--all", action="store_true", help="no sample: all mutants of each file")
    asked.add_argument("--seed", type=int, default=SEED, help="another sample")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/proof.md as it is")
    given = asked.parse_args()
    every = tomllib.loads(LISTED.read_text(encoding="utf-8"))["file"]
    wrong = []
    for part in given.part or PARTS:
        listed = [one for one in every if one["part"] == part and given.only in one["file"]]
        wrong += try_part(part, listed, given) if listed else []
    print("".join(f"\nWRONG: {line}" for line in wrong))
    return 1 if wrong else 0


def try_part(part: str, listed: Sequence[dict[str, Any]], given: argparse.Namespace) -> list[str]:
    """What is wrong. What was tried is told, and written down when it is the whole part."""
    began, looked = time.monotonic(), list[Looked]()
    for one in listed:
        print(f"\n{one['file']}", flush=True)
        looked.append(look_at(one, ALL if given.all else None, given.seed))
    report = told(part, looked, (time.monotonic() - began) / 60)
    print(f"\n{report}")
    wrong = [line for one in looked for line in one.wrong]
    if not given.only and not given.no_report:
        tried = len(wrong) + sum(one.counted[KILLED] + len(one.explained) for one in looked)
        what = f"the code that decides is changed in one place, and a test has to notice: {part}"
        write_part(f"mutants {part}", f"Mutants: {part}", report, InAll(what, tried, len(wrong)))
    return wrong


if __name__ == "__main__":
    os.environ.pop("HYPOTHESIS_PROFILE", None)
    sys.exit(main())

"""Mutants: the code that decides is changed in many small ways, and each time some test has to notice.

    python -m bench.mutants
    python -m bench.mutants --part rules
    python -m bench.mutants --only deciding --all
    python -m bench.mutants --explained

bench/mutants.toml lists the files, the tests that are about each, and the mutants that nobody can notice, each
with the reason. No file is changed: see mutant_tries. One that survives and is not explained makes it exit code 1.
docs/proof.md has a row for each file, which is written as soon as its mutants were tried.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Any

from bench.breaking_rules import TREE, surroundings
from bench.faults_report import PROOF, WIDTH, InAll, write_part
from bench.mutant_python import python_mutants
from bench.mutant_sql import functions_in, sql_changes

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


def look_at(listed: dict[str, Any], most: int | None, seed: int, *, only_explained: bool = False) -> Looked:
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
            "only_known": only_explained,
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


def how_many(listed: dict[str, Any]) -> int:
    """All mutants of a file, of which perhaps a sample is tried."""
    path, places = Path(listed["file"]), listed.get("places", [])
    text = (TREE / path).read_text(encoding="utf-8")
    if path.suffix == ".py":
        return sum(not places or one.place in places for one in python_mutants(str(path), text))
    return sum(len(list(sql_changes(body))) for name, body in functions_in(text) if not places or name in places)


@dataclass(frozen=True)
class Row:
    """What is told of a file. `tried` is less than there are when it was a sample."""

    file: str
    tried: int
    of: int
    killed: int
    survived: int
    explained: int
    on: str

    @classmethod
    def of_looked(cls, looked: Looked, of: int) -> "Row":
        killed, explained, wrong = looked.counted[KILLED], len(looked.explained), len(looked.wrong)
        tried, on = killed + explained + wrong, f"{datetime.now(UTC):%Y-%m-%d}"
        return cls(looked.file, tried, max(of, tried), killed, wrong, explained, on)

    def __str__(self) -> str:
        tried = f"{self.tried}" if self.tried == self.of else f"{self.tried} of {self.of}"
        numbers = f"{tried} | {self.killed} | {self.survived} | {self.explained}"
        return f"| `{self.file}` | {numbers} | {self.on} |"


TOLD = re.compile(
    r"^\| `(?P<file>[^`]+)` \| (?P<tried>\d+)(?: of (?P<of>\d+))? \| (?P<killed>\d+) \| (?P<survived>\d+)"
    r" \| (?P<explained>\d+) \| (?P<on>[\d-]+) \|$",
    re.MULTILINE,
)


def told_before() -> dict[str, Row]:
    found = {}
    for row in TOLD.finditer(PROOF.read_text(encoding="utf-8")):
        tried, killed, survived, explained = map(int, row.group("tried", "killed", "survived", "explained"))
        of = int(row["of"] or tried)
        found[row["file"]] = Row(row["file"], tried, of, killed, survived, explained, row["on"])
    return found


def told(part: str, rows: Sequence[Row]) -> str:
    table = [
        "| file | mutants | killed | survived | explained | on |",
        "|---|--:|--:|--:|--:|---|",
        *map(str, rows),
    ]
    tried, killed, survived, explained = (
        sum(getattr(row, name) for row in rows) for name in ("tried", "killed", "survived", "explained")
    )
    words = (
        f"{tried:,} mutants, {killed:,} killed, {survived} survived, {explained} explained as no fault. A mutant"
        " is the code with one comparison, condition, constant, lock or statement changed. Each explained one"
        " stands in `bench/mutants.toml` with its reason."
    )
    return "\n".join(table) + f"\n\n{fill(words, WIDTH)}\n\nAgain: `python -m bench.mutants --part {part}`"


def write_down(part: str, listed: Sequence[dict[str, Any]], new: Row) -> None:
    """The row of one file; the others stay as they are told."""
    known = told_before() | {new.file: new}
    rows = [known[one["file"]] for one in listed if one["file"] in known]
    what = f"the code that decides is changed in one place, and a test has to notice: {part}"
    in_all = InAll(what, sum(row.tried for row in rows), sum(row.survived for row in rows))
    write_part(f"mutants {part}", f"Mutants: {part}", told(part, rows), in_all)


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
    asked.add_argument(
        "--explained", action="store_true", help="only those that nobody is said to notice: does really nobody?"
    )
    asked.add_argument("--seed", type=int, default=SEED, help="another sample")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/proof.md as it is")
    given = asked.parse_args()
    every = tomllib.loads(LISTED.read_text(encoding="utf-8"))["file"]
    wrong = []
    for part in given.part or PARTS:
        trying = try_explained if given.explained else try_part
        wrong += trying(part, [one for one in every if one["part"] == part], given)
    print("".join(f"\nWRONG: {line}" for line in wrong))
    return 1 if wrong else 0


def try_part(part: str, listed: Sequence[dict[str, Any]], given: argparse.Namespace) -> list[str]:
    """What is wrong."""
    rows, wrong = list[Row](), list[str]()
    for one in listed:
        if given.only not in one["file"]:
            continue
        print(f"\n{one['file']}", flush=True)
        looked = look_at(one, ALL if given.all else None, given.seed)
        sampled = "most" in one and not given.all
        rows.append(Row.of_looked(looked, how_many(one) if sampled else 0))
        wrong += looked.wrong
        if not given.no_report:
            write_down(part, listed, rows[-1])
    if rows:
        print(f"\n{told(part, rows)}")
    return wrong


def try_explained(part: str, listed: Sequence[dict[str, Any]], given: argparse.Namespace) -> list[str]:
    """What is wrong: an explanation of something that a test does notice."""
    wrong = []
    for one in listed:
        if given.only not in one["file"] or not one.get("explained"):
            continue
        print(f"\n{one['file']}", flush=True)
        looked = look_at(one, ALL, given.seed, only_explained=True)
        noticed = [told for told in looked.outcomes if told["outcome"] != "survived"]
        wrong += [f"{one['file']}: explained, but {told['outcome']}: {told['mutant']}" for told in noticed]
        print(f"{part}: {len(looked.outcomes)} explained were tried, {len(noticed)} of them wrongly explained")
    return wrong


if __name__ == "__main__":
    os.environ.pop("HYPOTHESIS_PROFILE", None)
    sys.exit(main())

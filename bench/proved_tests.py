"""Tests in their long form as a part of docs/proof.md: how often what was tried, and what failed.

    python -m bench.proved_tests pairs [-n 4]

A test of Hypothesis counts once for each of its examples, one that goes through many cases by itself says how many
with record_property("tried", …), any other counts once. What failed is exit code 1.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPORT = "PROVED_TESTS_REPORT"
EXAMPLES = re.compile(r"(\d+) passing")


@dataclass(frozen=True)
class Proof:
    title: str
    tried: str
    tests: tuple[str, ...]


PROOFS = {
    "histories": Proof(
        "Histories of the queue, and every contract both ways",
        "tests of the queue, the repositories and the database in their long form",
        ("tests/queue", "tests/repository", "tests/database"),
    ),
    "answers": Proof(
        "The whole description of the server, under Schemathesis",
        "requests made from the description of the server",
        ("tests/server/test_described_answers.py",),
    ),
    "pairs": Proof(
        "Two operations on one row at once",
        "two operations on one row at once, begun in any order and at any distance",
        ("tests/faults/test_pairs.py",),
    ),
    "attacks": Proof(
        "Hostile input at every door",
        "hostile text, ids of others and stolen keys at every door",
        ("tests/attacks",),
    ),
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        counted = sum(map(int, EXAMPLES.findall(getattr(item, "hypothesis_statistics", ""))))
        said = sum(int(str(value)) for name, value in item.user_properties if name == "tried")
        report.user_properties = [*report.user_properties, ("times", said or counted or 1)]
    return report


class Counting:
    """What the reports of all workers say together."""

    def __init__(self) -> None:
        self.times = 0
        self.ended: Counter[str] = Counter()
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.ended[report.outcome] += 1
            self.times += int(str(dict(report.user_properties).get("times", 0)))
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            told = {"times": self.times, "tests": self.ended.total(), "failed": self.failed}
            Path(os.environ[REPORT]).write_text(json.dumps(told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Counting())


def main() -> int:
    import subprocess

    from bench.breaking_rules import TREE
    from bench.faults_report import InAll, write_part

    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("proof", choices=PROOFS)
    asked.add_argument("-n", dest="workers", default="0", help="how many tests at once")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/proof.md as it is")
    given = asked.parse_args()
    proof = PROOFS[given.proof]
    with tempfile.TemporaryDirectory(prefix="ac-proved-") as folder:
        report = Path(folder) / "report.json"
        how = ("-n", given.workers, "--dist", "loadgroup", "-p", "bench.proved_tests", *proof.tests)
        around = os.environ | {"HYPOTHESIS_PROFILE": "prove", REPORT: str(report)}
        code = subprocess.run((sys.executable, "-m", "pytest", *how), cwd=TREE, env=around, check=False).returncode
        told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    failed = [f"- `{name}`" for name in told["failed"]]
    words = f"{told['tests']:,} tests, {told['times']:,} cases, {len(failed)} failed."
    print(f"\n{words}")
    if not given.no_report:
        command = f"Again: `HYPOTHESIS_PROFILE=prove python -m bench.proved_tests {given.proof}`"
        text = "\n\n".join((words, *(("\n".join(failed),) if failed else ()), command))
        write_part(given.proof, proof.title, text, InAll(proof.tried, told["times"], len(failed)))
    return code


if __name__ == "__main__":
    sys.exit(main())

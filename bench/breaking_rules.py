"""Rules are broken one by one, and each time a test that names the rule has to notice; else it is exit code 1.

    python -m bench.breaking_rules
    python -m bench.breaking_rules --only U004-11

bench/breaks.toml lists the breaks: small edits that a careless engineer might really make. Nothing happens to the
tree itself: a copy of it is made, the tests are seen green in it, and then each break is made there, tried and
undone. A test has noticed when it itself fails; when it can't even begin, as after a break that no migration
survives, that shows nothing and counts as unnoticed.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.faults_report import InAll, write_part

TREE = Path(__file__).resolve().parent.parent
BREAKS = Path(__file__).with_name("breaks.toml")
SECONDS = 600.0
PASSED, FAILED = 0, 1
WHAT = "a rule of the acceptance list is broken, and its tests have to notice"
RULES = "RULES_TO_BREAK"
"""Tells the tests of the copy which rules they are about."""
# A break that Python stumbles over is no careless edit but a typing error: anything would notice it.
STUMBLES = ("NameError", "AttributeError", "ImportError", "TypeError", "SyntaxError")

TEACHING = """
a break, in bench/breaks.toml:

  [[break]]
  rule = "U004-11"                           the rule of the acceptance list that it breaks
  what = "nobody hurries in a session"       what is wrong then, in a few words
  file = "src/agent_console/…/presence.py"   where
  text = "row.jobs > 0 or row.in_session"    what stands there, exactly, and once in the file
  becomes = "row.jobs > 0"                   what stands there instead
  tests = ["tests/repository/…::test_…"]     tests that name the rule; of each at least one case has to fail

Add one whenever a test of a rule is written. When a break goes unnoticed, mend the test, not the break. When its
text is gone, the code has moved on: write the break anew.
"""


@dataclass(frozen=True)
class Break:
    rule: str
    what: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    def problem(self, tree: Path) -> str | None:
        """Why it can't be tried at all."""
        path = tree / self.file
        found = path.read_text(encoding="utf-8").count(self.text) if path.is_file() else 0
        return None if found == 1 else f"ITS TEXT IS {found} TIMES in {self.file}, not once"

    @contextmanager
    def made(self, tree: Path) -> Iterator[None]:
        path = tree / self.file
        whole = path.read_text(encoding="utf-8")
        path.write_text(whole.replace(self.text, self.becomes), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(whole, encoding="utf-8")


@dataclass(frozen=True)
class Ran:
    """What came of some tests."""

    code: int
    lines: tuple[str, ...]

    def noticed_by(self, test: str) -> bool:
        """Whether one of the test's cases failed; what could not even begin is an ERROR in pytest's words."""
        cases = (line for line in self.lines if line.startswith((f"FAILED {test} ", f"FAILED {test}[")))
        return any(not line.partition(" - ")[2].startswith(STUMBLES) for line in cases)

    def end(self) -> str:
        return "\n".join(self.lines[-15:])


def read_breaks(only: Sequence[str]) -> list[Break]:
    listed = tomllib.loads(BREAKS.read_text(encoding="utf-8"))["break"]
    breaks = [Break(**one | {"tests": tuple(one["tests"])}) for one in listed]
    if unknown := set(only) - {one.rule for one in breaks}:
        sys.exit(f"There is no break of {', '.join(sorted(unknown))} in {BREAKS.name}.")
    return [one for one in breaks if not only or one.rule in only]


@contextmanager
def copied_tree() -> Iterator[Path]:
    """The tree as it is just now, with what is not committed yet."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(listed, cwd=TREE, check=True, capture_output=True, text=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="ac-breaks-") as folder:
        for name in names:
            if name and (TREE / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(TREE / name, Path(folder) / name)
        yield Path(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """This file is a plugin of the tests that it runs: only the cases that name one of the rules are tried."""
    rules = set(os.environ[RULES].split())
    naming = [item for item in items if any(rules & set(mark.args) for mark in item.iter_markers("rule"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(naming)])
    items[:] = naming


def surroundings(tree: Path) -> dict[str, str]:
    """Of a run of tests that imports this tree and no other."""
    # Without compiled files each of the many starts would compile everything again.
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return around | {"PYTHONPATH": str(tree / "src"), "COLUMNS": "400"}


def run_tests(tree: Path, breaks: Sequence[Break]) -> Ran:
    """In a process of its own, which imports the copy."""
    tests = dict.fromkeys(test for one in breaks for test in one.tests)
    wanted = ("-q", "-rfE", "--tb=no", "-n", "0", "-p", "no:cacheprovider", "-p", "bench.breaking_rules", *tests)
    around = surroundings(tree) | {RULES: " ".join(one.rule for one in breaks)}
    command = (sys.executable, "-m", "pytest", *wanted)
    with subprocess.Popen(
        command, cwd=tree, env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            said, _ = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            # Asked to stop, not killed: it has a PostgreSQL to take with it.
            running.send_signal(signal.SIGINT)
            said, _ = running.communicate()
    return Ran(running.returncode, tuple(said.splitlines()))


def unnoticed(tree: Path, one: Break) -> str | None:
    """What is wrong with the tests of the rule, or None when all of them notice that it is broken."""
    with one.made(tree):
        ran = run_tests(tree, [one])
    if ran.code == PASSED:
        return "NOBODY NOTICED"
    if ran.code != FAILED:
        return f"pytest ended with {ran.code}\n{ran.end()}"
    silent = [test for test in one.tests if not ran.noticed_by(test)]
    return f"NOT NOTICED by {', '.join(silent)}\n{ran.end()}" if silent else None


def told(one: Break, outcome: str) -> None:
    print(f"| {one.rule} | {one.what} | {outcome} |", flush=True)


def names_of(tests: Sequence[str]) -> str:
    return ", ".join(f"`{test.removeprefix('tests/')}`" for test in tests)


def try_all(tree: Path, breaks: Sequence[Break]) -> int:
    """How many were not noticed by all who should."""
    wrong = 0
    for one in breaks:
        problem = one.problem(tree) or unnoticed(tree, one)
        wrong += problem is not None
        told(one, problem or names_of(one.tests))
    return wrong


def main() -> int:
    asked = argparse.ArgumentParser(
        prog="python -m bench.breaking_rules",
        description="Break rules in a copy of the tree, one by one, and see that the tests which name them fail.",
        epilog=TEACHING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--only", metavar="RULE", action="append", default=[], help="this rule; may be repeated")
    asked.add_argument("--no-report", action="store_true", help="print only, leave docs/proof.md as it is")
    given = asked.parse_args()
    breaks = read_breaks(given.only)
    began = time.monotonic()
    with copied_tree() as tree:
        before = run_tests(tree, breaks)
        if before.code != PASSED:
            print(f"Not all tests are green before anything is broken:\n{before.end()}")
            return 1
        print("| rule | what was broken | test that noticed |\n|---|---|---|", flush=True)
        wrong = try_all(tree, breaks)
    rules = len({one.rule for one in breaks})
    told_in_all = f"{len(breaks)} breaks of {rules} rules, {wrong} not noticed, {time.monotonic() - began:.0f} s"
    print(f"\n{told_in_all}")
    if not given.only and not given.no_report:
        text = f"{told_in_all}. Each stands in `bench/breaks.toml`.\n\nAgain: `python -m bench.breaking_rules`"
        write_part("breaks", "Rules that are broken on purpose", text, InAll(WHAT, len(breaks), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The part of docs/proof.md that a proof writes: its figures, its date and its machine, between two marks.

    python -m bench.faults_report

prints the one table of all parts, what was tried, how often and what was lost, and writes it above them.
"""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

WIDTH = 118
PROOF = Path(__file__).parents[1] / "docs" / "proof.md"
TITLE = (
    "# Proof\n\nAfter this page you know what was tried against agent-console, how often, and what was lost. Every"
    " part is\nwritten by the command that it names; `make prove` runs them all.\n"
)


@dataclass(frozen=True)
class Line:
    """`back` is the longest time until everybody worked again."""

    tried: str
    times: int
    lost: int
    back: str


def table(lines: Sequence[Line]) -> str:
    rows = [f"| {line.tried} | {line.times:,} | {line.lost} | {line.back} |" for line in lines]
    return "\n".join(
        ("| tried | times | lost or wrong | everybody back after at most |", "|---|--:|--:|--:|", *rows)
    )


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}, PostgreSQL 18"
    )


@cache
def commit() -> str:
    """What is proved; to be asked at the beginning, since somebody may commit meanwhile."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=PROOF.parents[1], stderr=subprocess.DEVNULL, text=True)

    try:
        head, changed = (
            git("rev-parse", "--short=10", "HEAD").strip(),
            git("status", "--porcelain", "src", "migrations"),
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed else head


@dataclass(frozen=True)
class InAll:
    """A part in one line: what was tried, how often, and how much was lost or wrong."""

    tried: str
    times: int
    lost: int

    def __str__(self) -> str:
        return f"<!-- in all | {self.tried} | {self.times:,} | {self.lost:,} -->"


def write_part(mark: str, title: str, text: str, in_all: InAll | None = None) -> None:
    """Replaces what this part said before, and leaves the others alone."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    told = "" if in_all is None else f"{in_all}\n"
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}, {machine()}."
    part = f"{begin}\n{told}## {title}\n\n{made}\n\n{text}\n{end}\n"
    page = PROOF.read_text() if PROOF.exists() else TITLE
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}\n", re.DOTALL)
    PROOF.write_text(old.sub(lambda _: part, page) if old.search(page) else f"{page}\n{part}")


PART = re.compile(
    r"<!-- (?P<mark>[\w ]+) -->\n(?:<!-- in all \| (?P<tried>.*?) \| (?P<times>.*?) \| (?P<lost>.*?) -->\n)?"
    r"## (?P<title>[^\n]*)\n\n(?P<day>[\d-]+)",
)
TABLE, TABLE_END = "<!-- table -->", "<!-- end of table -->"


def rows_of(page: str) -> Iterator[str]:
    for part in PART.finditer(page):
        tried, times, lost = (
            part["tried"] or part["title"],
            part["times"] or "see there",
            part["lost"] or "see there",
        )
        yield f"| {tried} | {times} | {lost} | {part['day']} |"


def write_table() -> str:
    """The first thing on the page."""
    page = PROOF.read_text()
    made = "\n".join(("| tried | times | lost or wrong | on |", "|---|--:|--:|---|", *rows_of(page)))
    whole = f"{TABLE}\n{made}\n{TABLE_END}\n"
    old = re.compile(f"{TABLE}.*?{TABLE_END}\n", re.DOTALL)
    head, _, rest = page.partition("\n<!-- ")
    PROOF.write_text(old.sub(lambda _: whole, page) if old.search(page) else f"{head}\n{whole}\n<!-- {rest}")
    return made


def main() -> int:
    made = write_table()
    print(made)
    lost = [row for row in made.splitlines()[2:] if row.split(" | ")[2] != "0"]
    print("\nlost or wrong: 0" if not lost else "\nNOT ZERO:\n" + "\n".join(lost))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())

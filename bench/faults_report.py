"""The part of docs/proof.md that a proof writes: a table, its date and its machine, between two marks."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

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


def write_part(mark: str, title: str, text: str) -> None:
    """Replaces what this part said before, and leaves the others alone."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    part = f"{begin}\n## {title}\n\n{datetime.now(UTC):%Y-%m-%d}, {machine()}.\n\n{text}\n{end}\n"
    page = PROOF.read_text() if PROOF.exists() else TITLE
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}\n", re.DOTALL)
    PROOF.write_text(old.sub(lambda _: part, page) if old.search(page) else f"{page}\n{part}")

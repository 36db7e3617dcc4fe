"""docs/rules.md: each rule of the acceptance list with the tests that name it.

The rules themselves are kept in the page; which tests show them is read from the tests' markers.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.docs.blocks import REPOSITORY

PAGE = REPOSITORY / "docs" / "rules.md"
RULE = re.compile(r"^\| (?P<id>[RU]\d{3}-\d+) \| (?P<rule>.*?) \| (?P<shown>[^|]*) \|$", re.MULTILINE)
MARKER = re.compile(r"\bmark\.rule\((.*?)\)", re.DOTALL)
ID = re.compile(r'"([RU]\d{3}-\d+)"')
NOBODY = "no test yet"


def rule_list(page: str, shown: Mapping[str, set[str]]) -> str:
    """The page with its last column made anew."""

    def row(found: re.Match[str]) -> str:
        tests = ", ".join(f"`{path}`" for path in sorted(shown.get(found["id"], ()))) or NOBODY
        return f"| {found['id']} | {found['rule']} | {tests} |"

    return RULE.sub(row, page)


def listed(page: str) -> Mapping[str, set[str]]:
    """Each rule of the page, and the tests that it names."""
    return {found["id"]: set(re.findall(r"`([^`]+)`", found["shown"])) for found in RULE.finditer(page)}


def shown_by_tests() -> Mapping[str, set[str]]:
    """The files below tests that name each rule."""
    found: dict[str, set[str]] = defaultdict(set)
    tests = REPOSITORY / "tests"
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for marker in MARKER.findall(text):
            for rule in ID.findall(marker):
                found[rule].add(str(path.relative_to(tests)))
    return found


def made_anew(path: Path = PAGE) -> str:
    return rule_list(path.read_text(encoding="utf-8"), shown_by_tests())

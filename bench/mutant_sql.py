"""Mutants of SQL: a condition is left out, a comparison is its neighbour, a lock is not taken, a case is gone."""

import re
from collections.abc import Iterator

SQL = re.compile(r"\b(select|update|insert into|delete from)\b")
FUNCTION = re.compile(r"^create function (\w+)", re.MULTILINE)
# Comments and quoted words are never changed, and what stands in them ends nothing.
QUIET = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
# What stands between two conditions, and what ends the last of them.
WORD = re.compile(
    r"\b(and|or|order by|group by|limit|for (?:no key )?(?:update|share)|returning|then|loop|union|on|join"
    r"|left join|cross join|where|when|else|end|as|from|into|select|set|having)\b|[();,]"
)
NEIGHBOURS = (
    (re.compile(r"(?<![<>=!:|@#-])<=(?!>)"), "<"),
    (re.compile(r"(?<![<>=!:|@#-])>="), ">"),
    (re.compile(r"(?<![<>=!:|@#-])<(?![=>@<])"), "<="),
    (re.compile(r"(?<![<>=!:|@#-])>(?![=>])"), ">="),
    (re.compile(r"\bis not null\b"), "is null"),
    (re.compile(r"\bis null\b"), "is not null"),
    (re.compile(r"\bnot exists\b"), "exists"),
    (re.compile(r"\bleast\b"), "greatest"),
    (re.compile(r"\bgreatest\b"), "least"),
    (re.compile(r"\bmin\("), "max("),
    (re.compile(r"\bmax\("), "min("),
    (re.compile(r"\+ 1\b"), "+ 2"),
    (re.compile(r"\bfor (?:no key )?update(?: of \w+)?(?: skip locked)?"), ""),
    (re.compile(r"\bskip locked\b"), ""),
)
DROPPED_LINE = re.compile(r"^ *(?:perform |raise |[\w.]+ := )[^;\n]*;$", re.MULTILINE)
Changed = tuple[str, str, str]


def is_sql(words: str) -> bool:
    return len(words) > 40 and SQL.search(words) is not None


def functions_in(text: str) -> Iterator[tuple[str, str]]:
    """Name and whole text of each function that a migration makes; what is quoted by dollars is a part of it."""
    for found in FUNCTION.finditer(text):
        end = text.index(";\n", found.start())
        if "$$" in text[found.start() : end]:
            end = text.index("\n$$;", found.start()) + len("\n$$")
        yield found[1], text[found.start() : end + 1]


def sql_changes(text: str) -> Iterator[Changed]:
    """What was there, what is there instead, and the whole text with it."""
    quiet = QUIET.sub(lambda found: re.sub(r"[^\n]", "~", found[0]), text)
    begins = re.search(r"\bas \$\$|\breturn\b", quiet)
    start = begins.end() if begins and quiet.lstrip().startswith("create function") else 0
    for pattern, becomes in NEIGHBOURS:
        for found in pattern.finditer(quiet, start):
            yield _one(text, found.start(), found.end(), becomes)
    for found in re.finditer(r"\b(and|or|where|when)\b", quiet[start:]):
        at, behind = found.start() + start, found.end() + start
        end = _condition_end(quiet, behind)
        if not text[behind:end].strip():
            continue
        if found[1] == "or":
            yield _one(text, at, end, "")
        else:
            word = {"and": "and true ", "where": "where true ", "when": "when null "}[found[1]]
            yield _one(text, at, end, word)
    for found in DROPPED_LINE.finditer(quiet, start):
        yield _one(text, found.start(), found.end(), "")


def _one(text: str, start: int, end: int, becomes: str) -> Changed:
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    around = text[line_start : line_end if line_end >= 0 else len(text)]
    was = " ".join(text[start:end].split())
    if len(was) < 12:
        was = f"{was} in {' '.join(around.split())}"
    return was[:140], becomes.strip() or "left out", text[:start] + becomes + text[end:]


def _condition_end(quiet: str, behind: int) -> int:
    """Where the condition that begins here ends: at the next word on its own level that can't be a part of it."""
    depth, between = 0, False
    for found in WORD.finditer(quiet, behind):
        word = found[0]
        if word == "(":
            depth += 1
        elif word == ")":
            if depth == 0:
                return found.start()
            depth -= 1
        elif depth == 0:
            between = between or "between" in quiet[behind : found.start()].split()
            if word == "and" and between:
                between = False
                continue
            if word in ("from", "when", "else", "end", "as", "then") and _inside_case(
                quiet[behind : found.start()]
            ):
                continue
            if word == "from" and quiet[: found.start()].rstrip().endswith("distinct"):
                continue
            return found.start()
    return len(quiet)


def _inside_case(words: str) -> bool:
    return len(re.findall(r"\bcase\b", words)) > len(re.findall(r"\bend\b", words))

"""Whether an installed version is one that is wanted; enough for our own requirements and nothing else."""

import re

_CLAUSE = re.compile(r"\s*(==|>=|<=|!=|~=|<|>)\s*([0-9][0-9a-zA-Z.*+!-]*)\s*")


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release, without zeros at the end: 8.2 and 8.2.0 are the same."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    found = [int(number) for number in release[0].split(".")] if release else []
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def satisfies(installed: str, wanted: str) -> bool:
    """Every clause of `wanted` holds; one that can't be read is no reason to complain."""
    return all(_holds(installed, clause) for clause in wanted.split(",") if clause.strip())


def _holds(installed: str, clause: str) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        return True
    have, want = numbers(installed), numbers(found[2])
    match found[1]:
        case "==":
            return have == want
        case "!=":
            return have != want
        case ">=":
            return have >= want
        case "<=":
            return have <= want
        case ">":
            return have > want
        case "<":
            return have < want
    return True

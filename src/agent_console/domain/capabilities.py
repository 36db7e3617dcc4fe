"""What agents can do, and what jobs ask for.

A capability is a plain word (`local_filesystem`), a tool with its version (`tool:photostats:1.2.3`) or a
connector (`connector:con_…`). A tool with a version also satisfies a demand for the tool alone.
"""

from collections.abc import Iterable

LONGEST = 200


def normal_capabilities(given: Iterable[str]) -> tuple[str, ...]:
    return normal_words(given, "a capability", LONGEST)


def normal_words(given: Iterable[str], what: str, longest: int) -> tuple[str, ...]:
    """Trimmed, distinct, in a fixed order; an empty or overlong one is an error."""
    words = {item.strip() for item in given}
    if "" in words:
        raise ValueError(f"{what} must not be empty")
    if any(len(word) > longest for word in words):
        raise ValueError(f"{what} has at most {longest} characters")
    return tuple(sorted(words))


def satisfies(capability: str, demand: str) -> bool:
    if capability == demand:
        return True
    if not (capability.startswith("tool:") and demand.startswith("tool:")):
        return False
    name, _, version = capability.removeprefix("tool:").partition(":")
    return bool(version) and demand == f"tool:{name}"


def unmet(demands: Iterable[str], capabilities: Iterable[str]) -> tuple[str, ...]:
    """The demands that no capability satisfies."""
    able = tuple(capabilities)
    return tuple(demand for demand in demands if not any(satisfies(has, demand) for has in able))

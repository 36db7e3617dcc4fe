"""What agents can do, and what jobs ask for.

A capability is a plain word (`local_filesystem`), a tool with its version (`tool:photostats:1.2.3`) or a
connector (`connector:con_…`). A tool with a version also satisfies a demand for the tool alone.
"""

from collections.abc import Iterable

LONGEST = 200


def normal_capabilities(given: Iterable[str]) -> tuple[str, ...]:
    """Trimmed, distinct, in a fixed order; an empty one is an error."""
    found: set[str] = set()
    for item in given:
        word = item.strip()
        if not word:
            raise ValueError("a capability must not be empty")
        if len(word) > LONGEST:
            raise ValueError(f"a capability has at most {LONGEST} characters")
        found.add(word)
    return tuple(sorted(found))


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

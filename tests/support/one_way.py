"""Which of several ways a test goes in a usual run: one, chosen by its name, so that each way has its share.

With HYPOTHESIS_PROFILE=prove every test goes all of them.
"""

import os
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

ALL = os.environ.get("HYPOTHESIS_PROFILE") == "prove"
WAYS = ("direct", "http")
"""To the repository. Both share everything behind the port, so what one of them shows holds for the other too."""
FIXTURES = frozenset({"open_repository", "crew", "everybody", "open_with"})


def chosen(name: str, ways: Sequence[object]) -> object:
    return ways[crc32(name.encode()) % len(ways)]


def kept(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    return [item for item in items if ALL or not _goes_another_way(item)]


def _goes_another_way(item: pytest.Item) -> bool:
    asked = getattr(item, "callspec", None)
    way = None if asked is None else next((asked.params[name] for name in FIXTURES & asked.params.keys()), None)
    return way in WAYS and way != chosen(item.nodeid.replace(f"{way}", "*"), WAYS)

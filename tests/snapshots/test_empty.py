"""A database with one team and nothing else in it."""

import pytest

from tests.snapshots.conftest import ROOMY, USUAL, LooksRight, Size, dimensions
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


@pytest.mark.parametrize("size", [USUAL, ROOMY], ids=dimensions)
@pytest.mark.parametrize(
    "keys", [(), ("3",), ("3", "f"), ("3", "u", "r")], ids=["agents", "jobs", "waiting", "upcoming"]
)
def test_nothing_yet(looks_right: LooksRight, database: str, size: Size, keys: tuple[str, ...]) -> None:
    empty = Fleet(database)
    empty.add_team("first")
    opening = directly(empty.working, team="first", user="admin@first.example")

    assert looks_right(console(opening, profile="local"), size, *keys)

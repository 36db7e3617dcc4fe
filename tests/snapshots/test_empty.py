"""A database with one team and nothing else in it."""

import pytest

from tests.snapshots.conftest import ROOMY, USUAL, LooksRight, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


@pytest.mark.sizes(USUAL, ROOMY)
@pytest.mark.parametrize(
    "keys", [(), ("3",), ("3", "f"), ("3", "u", "r")], ids=["agents", "jobs", "waiting", "upcoming"]
)
def test_nothing_yet(looks_right: LooksRight, database: str, size: Sizes, keys: tuple[str, ...]) -> None:
    empty = Fleet(database)
    empty.add_team("first")
    opening = directly(empty.working, team="first", user="admin@first.example")

    assert looks_right(console(opening, profile="local"), size, *keys)

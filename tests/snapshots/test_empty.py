"""A database with one team and nothing else in it."""

import pytest

from tests.snapshots.conftest import ROOMY, USUAL, LooksRightInTurn, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


@pytest.mark.sizes(USUAL, ROOMY)
def test_nothing_yet(looks_right_in_turn: LooksRightInTurn, database: str, size: Sizes) -> None:
    empty = Fleet(database)
    empty.add_team("first")
    opening = directly(empty.working, team="first", user="admin@first.example")

    assert looks_right_in_turn(
        console(opening, profile="local"),
        size,
        {"agents": (), "jobs": ("3",), "waiting": ("f",), "upcoming": (*["f"] * 4, "u", "r")},
    )

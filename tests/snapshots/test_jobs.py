"""The job queue: all of it, each group of it, one job of it."""

import pytest

from tests.snapshots.conftest import NARROW, ROOMY, USUAL, WIDE, LooksRight, LooksRightInTurn, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly

BOTH = pytest.mark.sizes(USUAL, ROOMY)
GROUPS = {"waiting": ("3", "f"), "held": ("f",), "failed": ("f",), "done": ("f",)}


@pytest.mark.sizes(NARROW, USUAL, ROOMY, WIDE)
def test_all_jobs(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working)), size, "3")


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_all_jobs_in_other_colours(looks_right: LooksRight, still_fleet: Fleet, theme: str) -> None:
    assert looks_right(console(directly(still_fleet.working), theme=theme), USUAL, "3")


@BOTH
def test_one_group(looks_right_in_turn: LooksRightInTurn, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right_in_turn(console(directly(still_fleet.working)), size, GROUPS)


@BOTH
def test_marked_jobs(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    keys = ("3", "space", "space", "down", "space", "home")

    assert looks_right(console(directly(still_fleet.working)), size, *keys)


@BOTH
def test_a_running_job(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working)), size, "3", "down", "down", "enter")


def test_a_dead_letter(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(console(directly(still_fleet.working)), USUAL, "3", "f", "f", "f", "enter")


@pytest.mark.sizes(NARROW, USUAL, ROOMY, WIDE)
def test_upcoming_jobs(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working)), size, "3", "u", "r")

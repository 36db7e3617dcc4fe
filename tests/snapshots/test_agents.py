"""The agent pool."""

import pytest

from tests.snapshots.conftest import NARROW, ROOMY, USUAL, WIDE, LooksRight, Size, dimensions
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


@pytest.mark.parametrize("size", [NARROW, USUAL, ROOMY, WIDE], ids=dimensions)
def test_the_pool(looks_right: LooksRight, still_fleet: Fleet, size: Size) -> None:
    assert looks_right(console(directly(still_fleet.working)), size)


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_the_pool_in_other_colours(looks_right: LooksRight, still_fleet: Fleet, theme: str) -> None:
    assert looks_right(console(directly(still_fleet.working), theme=theme), USUAL)


@pytest.mark.parametrize("size", [USUAL, ROOMY], ids=dimensions)
def test_an_agent_in_trouble(looks_right: LooksRight, still_fleet: Fleet, size: Size) -> None:
    to_gantry = ["down"] * 6

    assert looks_right(console(directly(still_fleet.working)), size, *to_gantry, "enter")

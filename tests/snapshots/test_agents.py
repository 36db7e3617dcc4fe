"""The agent pool."""

import pytest

from agent_console.domain.ids import SessionId
from tests.snapshots.conftest import NARROW, ROOMY, USUAL, WIDE, LooksRight, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly
from tests.tui_console.test_agent_detail import add_collection, open_session

FIXED_SESSION = SessionId(int=0x03B5058EAB807AAA8AAA000000000001)


@pytest.mark.sizes(NARROW, USUAL, ROOMY, WIDE)
def test_the_pool(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working)), size)


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_the_pool_in_other_colours(looks_right: LooksRight, still_fleet: Fleet, theme: str) -> None:
    assert looks_right(console(directly(still_fleet.working), theme=theme), USUAL)


@pytest.mark.sizes(USUAL, ROOMY)
def test_an_agent_in_trouble(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    to_gantry = ["down"] * 6

    assert looks_right(console(directly(still_fleet.working)), size, *to_gantry, "enter")


@pytest.fixture
def busy_fleet(fleet: Fleet) -> Fleet:
    """Cartographer has two jobs, some behind it, a collection, and a session."""
    add_collection(fleet, "Reports of 2098", "cartographer")
    open_session(fleet, "cartographer", FIXED_SESSION)
    return fleet


@pytest.mark.sizes(NARROW, USUAL, ROOMY, WIDE)
def test_an_agent_at_work(looks_right: LooksRight, busy_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(busy_fleet.working)), size, "down", "down", "enter")


def test_an_agent_of_somebody_else(looks_right: LooksRight, busy_fleet: Fleet) -> None:
    opening = directly(busy_fleet.working, user="ole@example.com")

    assert looks_right(console(opening), USUAL, "down", "down", "enter", "end")


def test_the_jobs_of_an_agent(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(console(directly(still_fleet.working)), USUAL, "w", "r")

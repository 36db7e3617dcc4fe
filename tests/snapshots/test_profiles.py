"""Which profile one is in must be seen without reading: production, read-only, colours of one's own."""

import pytest

from tests.snapshots.conftest import ROOMY, USUAL, LooksRight, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly

BOTH = pytest.mark.sizes(USUAL, ROOMY)


@BOTH
def test_production(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working), profile="prod-eu", production=True), size)


@BOTH
def test_read_only(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working), read_only=True), size)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_colour_of_its_own(looks_right: LooksRight, still_fleet: Fleet, theme: str) -> None:
    opening = directly(still_fleet.working)

    assert looks_right(console(opening, profile="staging", colour="yellow", theme=theme), USUAL)

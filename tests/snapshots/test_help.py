"""Help: the keys that work where it was asked for."""

import pytest

from tests.snapshots.conftest import NARROW, ROOMY, USUAL, LooksRight, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


@pytest.mark.sizes(NARROW, USUAL, ROOMY)
def test_help_on_the_jobs(looks_right: LooksRight, still_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_fleet.working)), size, "3", "question_mark")


def test_help_on_one_job(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(console(directly(still_fleet.working)), USUAL, "3", "enter", "question_mark")

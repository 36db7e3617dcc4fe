"""A terminal that can show no console gets the plain status, and not one sequence that it would not understand."""

import pytest

from tests.journeys.still_fleet import place
from tests.journeys.terminal import QUIET, terminal
from tests.support.clusters import reachable_folder
from tests.support.fleet import Fleet
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)


def test_a_dumb_terminal_gets_the_plain_status(story: Fleet) -> None:
    with reachable_folder() as folder, terminal(folder, (120, 40)) as console:
        console.start(*place(story), environment={"TERM": "dumb"})

        console.wait_for_end(0)

        console.wait_for("team example, as Ana Costa", "cartographer", "the console needs a terminal")
        assert b"\x1b" not in console.written()
        assert console.modes() == QUIET
        console.wait_for_nobody()

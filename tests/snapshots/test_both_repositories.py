"""Which way the data came must not be seen."""

import re

from textual._doc import take_svg_screenshot

from agent_console.tui.link import Opening
from tests.snapshots.conftest import ROOMY, LooksRight
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, story_of, through_server


def picture(opening: Opening) -> str:
    shown = take_svg_screenshot(app=console(opening), terminal_size=ROOMY, run_before=story_of("3", "down"))
    return re.sub(r"terminal-\d+", "terminal", shown)


def test_both_repositories_give_the_same_picture(still_fleet: Fleet) -> None:
    direct = picture(directly(still_fleet.working))

    served = picture(through_server(still_fleet))

    assert served == direct


def test_the_jobs_through_a_server(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(console(through_server(still_fleet)), ROOMY, "3", "down")

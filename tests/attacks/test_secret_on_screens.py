"""A secret that somebody put into every field of every operation is on no screen of the console."""

import re

import pytest

from agent_console.domain.ids import OperatorTokenId, TeamId
from agent_console.domain.secrets import Secret
from tests.attacks.test_every_entry import DOORS, Doors, doors
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, loaded, press, shown_text

__all__ = ["doors"]

PANES = ("0", "1", "2", "3", "4", "5", "6", "7")


@pytest.mark.rule("U002-31")
async def test_a_secret_that_was_put_anywhere_is_on_no_screen(doors: Doors, fleet: Fleet) -> None:
    canary = Secret.mint(TeamId.new(), OperatorTokenId.new()).word
    for door in DOORS:
        await doors.enter(door, canary)

    app = console(directly(fleet.working))
    seen = []
    async with app.run_test(size=(400, 100)) as pilot:
        await loaded(pilot)
        for pane in PANES:
            await press(pilot, pane)
            seen.append(shown_text(app))
            await press(pilot, "enter")
            seen.append(shown_text(app))
            await press(pilot, "escape")

    everything = re.sub(r"\s", "", "".join(seen))
    assert len(everything) > 5_000
    assert [place for place, text in enumerate(seen) if canary[40:] in re.sub(r"\s", "", text)] == []

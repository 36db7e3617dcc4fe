"""What the team has set."""

from datetime import timedelta

import pytest
from textual.pilot import Pilot

from agent_console.tui.dialogs.operation_form import OperationForm
from tests.snapshots.conftest import NARROW, ROOMY, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import ADMIN, console, directly, list_of, loaded, press, until_on
from tests.tui_console.test_settings import go_to_settings


@pytest.fixture
def fleet_with_settings(fleet: Fleet) -> Fleet:
    for name, value, hours in (("job_history_days", "30", 50), ("max_hops", "4", 1)):
        fleet.execute(
            "insert into settings (team_id, name, value, updated_by_user_id, updated_at)"
            " values (%s, %s, %s, %s, %s)",
            *(fleet.team_id(), name, value, fleet.user_id(ADMIN), AT - timedelta(hours=hours)),
        )
    return fleet


@pytest.mark.sizes(NARROW, USUAL, ROOMY, WIDE)
def test_the_settings(snap_compare: SnapCompare, fleet_with_settings: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await go_to_settings(app)
        await press(pilot, "down")

    assert snap_compare(console(directly(fleet_with_settings.working)), terminal_size=size, run_before=story)


def test_changing_one(snap_compare: SnapCompare, fleet_with_settings: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await go_to_settings(app)
        list_of(app).table.move_to("max_hops")
        await pilot.press("enter")
        await until_on(app, OperationForm)

    assert snap_compare(console(directly(fleet_with_settings.working)), terminal_size=USUAL, run_before=story)

"""The queue under an operator's hands: paused, explained, and worked on in bulk."""

from datetime import timedelta

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import JobEventId, JobId
from agent_console.tui import batches
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.batch_dialog import BatchDialog, Phase
from agent_console.tui.dialogs.operation_form import DoIt
from tests.snapshots.conftest import NARROW, ROOMY, USUAL, WIDE, LooksRight, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    ADMIN,
    choose,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
    until_on,
)
from tests.tui_console.test_many import held

PAUSE = """
    update teams
       set paused_at = %s, pause_mode = 'drain', paused_by_user_id = %s,
           pause_reason = 'the storage array is being replaced; ask Ole before you resume it'
"""
STORY = (
    (38, "info", "queued to assigned: cartographer"),
    (37, "info", "assigned to running"),
    (25, "warn", "slow answer from the ledger, 12 s"),
    (20, "error", "the ledger answered 503 Service Unavailable"),
    (20, "info", "given back to the queue: try 2 of 3"),
)


@pytest.fixture
def paused_fleet(fleet: Fleet) -> Fleet:
    fleet.execute(PAUSE, AT - timedelta(minutes=12), fleet.user_id(ADMIN))
    return fleet


@pytest.mark.sizes(NARROW, USUAL, ROOMY)
def test_a_paused_queue(looks_right: LooksRight, paused_fleet: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(paused_fleet.working)), size, "3")


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_a_paused_queue_in_other_colours(looks_right: LooksRight, paused_fleet: Fleet, theme: str) -> None:
    assert looks_right(console(directly(paused_fleet.working), theme=theme), USUAL)


@pytest.mark.sizes(USUAL, WIDE)
def test_why_a_job_waits_and_its_story(looks_right: LooksRight, fleet: Fleet, size: Sizes) -> None:
    job_id = fleet.one("select id from jobs where type = 'report' and status = 'queued' order by id desc limit 1")
    for seconds, level, message in STORY:
        fleet.execute(
            "insert into job_events (team_id, id, job_id, level, message, created_at)"
            " values (%s, %s, %s, %s, %s, %s)",
            *(fleet.team_id(), JobEventId.new(), job_id, level, message, AT - timedelta(seconds=seconds)),
        )

    assert looks_right(console(directly(fleet.working)), size, "3", "down", "enter")


def test_why_a_job_waits_while_the_queue_is_paused(looks_right: LooksRight, paused_fleet: Fleet) -> None:
    assert looks_right(console(directly(paused_fleet.working)), USUAL, "3", "down", "enter")


def test_what_can_be_done_to_the_queue(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "3")
        await pilot.press("n")
        await until_on(app, ActionMenu)

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=USUAL, run_before=story)


async def look_at_cancelling(app: ConsoleApp, pilot: Pilot[None]) -> BatchDialog:
    """From the marked rows to what cancelling them would do."""
    await choose(app, pilot, "a", "jobs.cancel_many")
    app.screen.query_one("#field-reason", Input).value = "wrong month"
    app.screen.query_one(DoIt).focus()
    await pilot.press("enter")
    await until_on(app, BatchDialog)
    assert isinstance(app.screen, BatchDialog)
    await pilot.pause()
    return app.screen


async def mark(app: ConsoleApp, pilot: Pilot[None], *jobs: JobId) -> None:
    for job_id in jobs:
        assert list_of(app).table.move_to(str(job_id))
        await press(pilot, "space")
    await press(pilot, "home")


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_before_many_are_changed(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "3")
        await mark(app, pilot, *(still_fleet.first_job(state) for state in ("queued", "running", "succeeded")))
        await look_at_cancelling(app, pilot)

    assert snap_compare(console(directly(still_fleet.working)), terminal_size=size, run_before=story)


@pytest.mark.sizes(USUAL, WIDE)
def test_while_many_are_changed(
    snap_compare: SnapCompare, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, size: Sizes
) -> None:
    monkeypatch.setattr(batches, "BATCH_MOST", 3)
    fifth = fleet.execute("select id from jobs where status in ('queued', 'scheduled') order by id desc")[4][0]

    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "3", "f", "asterisk")
        await look_at_cancelling(app, pilot)
        await pilot.press("y")
        await until(lambda: "3 done, 0 refused, 5 left" in shown_text(app), "the first batch")
        await pilot.press("escape")
        await until(lambda: "Stopping after this batch" in shown_text(app), "that it will stop")
        # What the list behind the dialog has heard of the first batch is on the screen too.
        await until(lambda: len(row_ids(list_of(app))) == 5, "the list without the first batch")

    assert hasattr(fifth, "int")
    with held(fleet, str(JobId(int=fifth.int))):
        assert snap_compare(console(directly(fleet.working)), terminal_size=size, run_before=story)


@pytest.mark.sizes(USUAL, WIDE)
def test_after_many_were_changed(snap_compare: SnapCompare, fleet: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "3")
        queued = fleet.first_job("queued")
        await mark(app, pilot, queued, *(fleet.first_job(state) for state in ("failed", "succeeded")))
        dialog = await look_at_cancelling(app, pilot)
        await pilot.press("y")
        await until(lambda: dialog.phase is Phase.DONE, "the end")
        await until(
            lambda: fleet.one("select status from jobs where id = %s", queued) == "cancelled", "the cancelled job"
        )
        list_of(app).refetch()
        await until(lambda: "- cancelled" in str(list_of(app).table.source.row_at(14).cells), "the list again")

    assert snap_compare(console(directly(fleet.working)), terminal_size=size, run_before=story)

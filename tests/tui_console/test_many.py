"""Work on many jobs: looked at first, asked for with a key of its own, watched, stopped between two batches."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobsCancelling
from agent_console.tui import batches
from agent_console.tui.app import ConsoleApp
from agent_console.tui.batches import parted
from agent_console.tui.dialogs.batch_dialog import NOT_KNOWN, BatchDialog, Phase
from agent_console.tui.dialogs.batch_form import BatchForm
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.link import Opening
from agent_console.tui.widgets import virtual_table
from tests.support.fleet import Fleet
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

WAITING = "select count(*) from jobs where status in ('queued', 'scheduled')"
CUT_OFF = """
    select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'
"""
HELD_UP = """
    select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""
CANCELLED = "select count(*) from jobs where status = 'cancelled'"


@contextmanager
def held(fleet: Fleet, job_id: str) -> Iterator[psycopg.Connection]:
    """Somebody else works on this job: whoever wants to change it waits until they have rolled back."""
    with psycopg.connect(fleet.administration) as connection:
        connection.execute("select id from jobs where id = %s for update", (JobId.parse(job_id),))
        yield connection
        connection.rollback()


async def look(app: ConsoleApp, pilot: Pilot[None]) -> BatchDialog:
    app.screen.query_one(DoIt).focus()
    await pilot.press("enter")
    await until_on(app, BatchDialog)
    assert isinstance(app.screen, BatchDialog)
    await pilot.pause()
    return app.screen


async def until_phase(dialog: BatchDialog, phase: Phase) -> None:
    await until(lambda: dialog.phase is phase, phase.name)


async def test_the_marked_jobs_are_changed_together_and_the_refused_ones_are_named(
    opening: Opening, fleet: Fleet
) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        refused = str(fleet.first_job("succeeded"))
        for job_id in (str(fleet.first_job("queued")), refused):
            list_of(app).table.move_to(job_id)
            await press(pilot, "space")
        assert "● 2 marked" in shown_text(app)

        await choose(app, pilot, "a", "jobs.cancel_many")
        assert "Cancel 1 of 2 marked" in shown_text(app)
        app.screen.query_one("#field-reason", Input).value = "not needed"
        dialog = await look(app, pilot)
        assert "1 would be changed. 1 would be refused." in shown_text(app)
        assert fleet.one(CANCELLED) == 1
        await pilot.press("enter", "y")
        await until_phase(dialog, Phase.DONE)
        await pilot.pause()

        assert "✓ Done: 1 done, 1 refused, 0 left" in shown_text(app)
        assert refused in shown_text(app).partition("Refused:")[2]
        assert fleet.one(CANCELLED) == 2
        assert fleet.one("select count(*) from jobs where cancel_reason = 'not needed'") == 1
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "the list again")
        await until(lambda: not list_of(app).table.marks, "nothing is marked any more")


async def test_enter_never_does_it_to_many(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "down", "space")
        await choose(app, pilot, "a", "jobs.cancel_many")
        dialog = await look(app, pilot)

        await pilot.press("enter", "enter", "space")
        assert dialog.phase is Phase.ASKING
        await pilot.press("escape")

        await until(lambda: len(app.screen_stack) == 1, "the list again")
        assert fleet.one(CANCELLED) == 1
        assert len(list_of(app).table.marks) == 1


async def test_all_that_match_the_filter_are_counted_and_shown_before_anybody_is_asked(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "f", "f")
        await choose(app, pilot, "n", "jobs.retry_many")
        assert app.screen.query_one("#field-status", Input).value == "failed, dead_letter"

        dialog = await look(app, pilot)
        shown = shown_text(app)
        assert "2 would be changed." in shown
        assert "status: failed, dead_letter" in shown
        assert str(fleet.first_job("dead_letter")) in shown
        assert "Press y to retry 2" in shown
        await pilot.press("y")

        await until_phase(dialog, Phase.DONE)
        assert fleet.one("select count(*) from jobs where parent_kind = 'retry'") == 2


async def test_a_filter_that_means_everything_is_refused_in_the_form(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        await choose(app, pilot, "n", "jobs.cancel_many")

        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(lambda: "filter has to be given" in shown_text(app), "the refusal")
        assert isinstance(app.screen, BatchForm)


async def begin_three_batches(app: ConsoleApp, pilot: Pilot[None]) -> BatchDialog:
    """The eight waiting jobs are marked, and cancelling them has begun."""
    await choose(app, pilot, "a", "jobs.cancel_many")
    dialog = await look(app, pilot)
    assert "8 would be changed." in shown_text(app)
    await pilot.press("y")
    await until(lambda: "3 done, 0 refused, 5 left" in shown_text(app), "the first batch")
    return dialog


async def test_esc_stops_between_two_batches_and_says_how_many_were_done(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_MOST", 3)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "asterisk")
        with held(fleet, row_ids(list_of(app))[4]) as somebody:
            dialog = await begin_three_batches(app, pilot)
            assert "37% ███" in shown_text(app)

            await pilot.press("escape", "escape")
            await until(lambda: "Stopping after this batch" in shown_text(app), "a word about it")
            somebody.rollback()

        await until_phase(dialog, Phase.STOPPED)
        await pilot.pause()
        assert "6 done, 0 refused, 2 left" in shown_text(app)
        assert "what is left was not touched" in shown_text(app)
        assert fleet.one(WAITING) == 2
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "the list again")


@pytest.mark.usefixtures("nobody_looks_again")
async def test_when_it_cannot_go_on_it_says_how_far_it_came(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_MOST", 3)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "asterisk")
        with held(fleet, row_ids(list_of(app))[4]) as somebody:
            dialog = await begin_three_batches(app, pilot)
            await until(lambda: fleet.one(HELD_UP) == 1, "the second batch is under way")
            fleet.execute("update users set is_active = false where email = %s", ADMIN)
            somebody.rollback()

        await until_phase(dialog, Phase.STOPPED)
        await pilot.pause()
        # Whoever hears first that this person may no longer ask, the batch or a look at the list, ends it.
        assert "6 done, 0 refused, 2 left" in shown_text(app)
        assert NOT_KNOWN not in shown_text(app)
        assert fleet.one(WAITING) == 2


async def test_a_batch_whose_answer_was_lost_is_not_told_to_be_done_or_undone(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_MOST", 3)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "asterisk")
        with held(fleet, row_ids(list_of(app))[4]):
            dialog = await begin_three_batches(app, pilot)
            await until(lambda: bool(fleet.execute(CUT_OFF)), "the connection that waits is cut")

            await until_phase(dialog, Phase.STOPPED)

        await pilot.pause()
        assert "3 done, 0 refused, 5 left" in shown_text(app)
        assert NOT_KNOWN in shown_text(app)


def test_more_ids_than_a_batch_takes_are_asked_for_in_turn() -> None:
    ids = tuple(str(JobId.new()) for _ in range(1201))

    requests = parted(JobsCancelling(ids=(JobId.parse(ids[0]),), reason="not needed"), ids)

    assert [len(request.model_dump()["ids"]) for request in requests] == [500, 500, 201]
    assert {request.model_dump()["reason"] for request in requests} == {"not needed"}


async def test_of_a_list_too_long_to_mark_it_is_said_what_to_do_instead(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_table, "MARK_ALL_LIMIT", 20)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "3", "asterisk")

        await until(lambda: any("all that match" in note.message for note in app._notifications), "the other way")
        assert list_of(app).table.marks == frozenset()


async def test_esc_takes_the_marks_off(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "space", "space")
        assert "● 2 marked" in shown_text(app)

        await press(pilot, "escape")

        assert list_of(app).table.marks == frozenset()
        assert "marked" not in shown_text(app)

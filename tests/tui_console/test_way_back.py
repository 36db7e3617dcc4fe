"""From thing to thing and back: Esc goes the way one came, also from the lists that belong to a thing."""

import pytest

from agent_console.domain.ids import RunId
from agent_console.tui import going
from agent_console.tui.going import DEEPEST, TOO_DEEP
from agent_console.tui.panes.detail_screen import DetailScreen
from agent_console.tui.panes.jobs.screen import JobScreen
from agent_console.tui.panes.runs.screen import RunScreen
from agent_console.tui.wanted import RecordWanted, ThingWanted
from agent_console.tui.widgets.way_line import way_text
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    console,
    directly,
    has_detail,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
)

WAY = ("Jobs", "report", "cartographer", "Audit trail of cartographer")


def test_a_way_that_is_too_long_loses_its_beginning_and_never_where_one_is() -> None:
    assert way_text(WAY, 80).plain == "Jobs › report › cartographer › Audit trail of cartographer"
    assert way_text(WAY, 50).plain == "… › cartographer › Audit trail of cartographer"
    assert way_text(WAY, 30).plain == "… › Audit trail of cartograph…"
    assert way_text(("漢" * 60,), 20).cell_length <= 20
    assert way_text((), 20).plain == ""


async def test_esc_leads_from_a_list_back_to_the_screens_it_was_opened_from(fleet: Fleet) -> None:
    """Not to the pane of that kind of thing: there the way would be lost."""
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "f", "f", "enter")
        await until(lambda: isinstance(app.detail, JobScreen) and has_detail(app), "the job")
        job = app.detail
        await press(pilot, "A")
        await until(lambda: app.detail is not job and has_detail(app), "its agent")
        agent = app.detail
        assert isinstance(agent, DetailScreen)
        steps = app.crumbs
        await press(pilot, "w")
        await until(lambda: app.pane.crumb.startswith("Jobs of") and app.pane.has_answer, "its jobs")
        assert app.crumbs == (*steps, app.pane.crumb)
        await until(lambda: " › ".join(steps) in shown_text(app), "the way one came")

        await press(pilot, "enter")
        await until(lambda: app.detail is not None and app.detail is not agent, "one of them")
        assert app.crumbs[: len(steps)] == steps
        await press(pilot, "escape")
        await until(lambda: app.detail is None, "its jobs again")

        await press(pilot, "escape")
        await until(lambda: app.detail is agent and has_detail(app), "the very screen of the agent")
        assert app.crumbs == steps
        await press(pilot, "escape")
        await until(lambda: app.detail is job, "the job")
        await press(pilot, "escape")
        await until(lambda: app.detail is None and app.pane.pane_name == "jobs", "where it began")


async def test_who_goes_elsewhere_leaves_the_way_behind(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="agents")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "enter")
        await until(lambda: has_detail(app), "an agent")
        agent = app.detail
        assert agent is not None
        await press(pilot, "l")
        await until(lambda: len(app.crumbs) == 3, "its acts")
        await press(pilot, "3")
        await until(lambda: app.pane.pane_name == "jobs" and app.pane.has_answer, "the jobs")

        assert app.crumbs == ("Jobs",)
        await until(lambda: not agent.is_attached, "the screen that nobody comes back to is gone")


async def test_who_has_opened_too_many_screens_is_told_why_no_more_open(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        jobs = list_of(app)
        for row in row_ids(jobs)[:DEEPEST]:
            record = jobs.record(row)
            assert record is not None
            jobs.post_message(RecordWanted(jobs.kind, record))

        await until(lambda: any(note.message == TOO_DEEP for note in app._notifications), "why")

        assert len(app.screen_stack) == DEEPEST


async def test_a_run_leads_to_the_route_that_let_it_through_and_to_what_is_known_of_that(story: Fleet) -> None:
    run = story.one("select id from runs where route_version is not null order by id limit 1")
    app = console(directly(story.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.pane.post_message(ThingWanted("runs", str(RunId(str(run)))))
        await until(lambda: isinstance(app.detail, RunScreen) and has_detail(app), "the run")
        shown = app.detail
        await press(pilot, "R")
        await until(lambda: app.detail is not shown and "policy" in shown_text(app), "its route")
        route = app.detail
        await press(pilot, "l")
        await until(lambda: app.pane.crumb.startswith("Audit trail of") and app.pane.has_answer, "its acts")
        await press(pilot, "escape")
        await until(lambda: app.detail is route, "the route")
        await press(pilot, "escape")
        await until(lambda: app.detail is shown, "the run")

        await press(pilot, "l")
        await until(lambda: app.pane.crumb.startswith("Audit trail of the run of"), "the acts on the run")

        story.execute("delete from a2a_routes")
        await press(pilot, "escape")
        await until(lambda: app.detail is shown, "the run again")
        await press(pilot, "R")
        await until(lambda: any("is gone" in note.message for note in app._notifications), "a word about that")


async def test_lists_of_one_thing_are_not_kept_for_ever_but_those_one_came_by_are(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(going, "LISTS_KEPT", 2)
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        for _ in range(5):
            await press(pilot, "down", "l")
            await until(lambda: app.pane.pane_name.startswith("trail-"), "its trail")
            await press(pilot, "escape")
        # The last one is given back by whoever opens the next.
        await until(lambda: len([pane for pane in app._panes if pane.tab != pane.pane_name]) <= 3, "a few of them")
        shown = {pane.id for pane in app._switcher.children}
        assert {pane.id for pane in app._panes} <= shown
        assert len(shown) <= len(app._panes) + 1

        await press(pilot, "enter", "l")
        await until(lambda: app.pane.tab == "jobs" and app.pane.has_answer, "a trail from a job")
        await press(pilot, "escape")
        await until(lambda: isinstance(app.detail, JobScreen), "back to where it was opened")

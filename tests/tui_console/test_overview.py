"""The overview: what needs somebody comes first, and every line leads to where it can be mended."""

from contextlib import AsyncExitStack
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from agent_console.domain.duties import DUTY_RULES
from agent_console.repository.port import Topic
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import LinkState, Opening
from agent_console.tui.panes.overview import pane as overview
from agent_console.tui.panes.overview.pane import OverviewPane
from agent_console.tui.widgets.virtual_table import VirtualTable
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import AT, Fleet
from tests.support.serving import serving
from tests.tui_console.stage import (
    ADMIN,
    SteppingClock,
    announce,
    console,
    directly,
    list_of,
    loaded,
    press,
    shown_text,
    through,
    until,
)
from tests.tui_console.test_hostile import storable
from tests.tui_console.warden import Warden

BURY = """
    update jobs set status = 'dead_letter', finished_at = %s, error_message = %s, look_at = null where id = %s
"""
PAUSE = """
    update teams
       set paused_at = %s, pause_mode = 'drain', paused_by_user_id = %s, pause_reason = 'disk swap'
"""
MEND = (
    # Past the rules of what may be removed and who may decide what.
    "set session_replication_role = replica",
    "delete from job_events using jobs where jobs.id = job_id and jobs.status = 'dead_letter'",
    "update approvals set state = 'expired', decided_at = now(), decision_reason = 'over' where state = 'pending'",
    "reset session_replication_role",
    "delete from jobs where status = 'dead_letter'",
    "update agent_runtime set presence = 'online', error_message = null where presence = 'error'",
)
DUTIES_DONE = """
    insert into duty_rounds (duty, done_at, done_by, seconds)
    select unnest(%s::text[]), '2099-01-01', 'here:1', 0.1
"""


def do_the_duties(fleet: Fleet) -> None:
    """Somebody does them, now and for a long time to come."""
    fleet.execute(DUTIES_DONE, [rule.name for rule in DUTY_RULES])


def overview_of(app: ConsoleApp) -> OverviewPane:
    assert isinstance(app.pane, OverviewPane)
    return app.pane


def lines(table: VirtualTable) -> dict[str, list[str]]:
    rows = (table.source.row_at(index) for index in range(len(table.source)))
    return {row.id: [cell.plain for cell in row.cells] for row in rows}


async def test_what_needs_somebody_comes_first_and_leads_to_it(opening: Opening, fleet: Fleet) -> None:
    do_the_duties(fleet)
    fleet.add_jobs(12, status="dead_letter")
    app = console(opening, start="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        table = overview_of(app).needing
        before = list(lines(table))
        assert [cells[:2] for cells in lines(table).values()][:2] == [
            ["▲ agent error", "gantry"], ["▲ dead letter", "deploy"],
        ]  # fmt: skip
        await press(pilot, "down")
        buried = table.cursor_id

        running = fleet.first_job("queued")
        fleet.execute(BURY, AT, "the disk is full", running)
        announce(fleet, Topic.JOBS)

        await until(lambda: list(lines(table)) == [f"dead_letter:{running}", *before], "the new danger on top")
        assert (table.cursor_id, table.scroll_offset.y) == (buried, 0)
        assert "the disk is full" in shown_text(app)

        await press(pilot, "home", "enter")
        await until(lambda: app.detail is not None and str(running) in shown_text(app), "the dead letter")
        await press(pilot, "escape")
        assert app.focused is table


async def test_conditions_under_which_nothing_goes_well_stand_above_all(fleet: Fleet) -> None:
    fleet.execute(PAUSE, AT - timedelta(minutes=12), fleet.user_id(ADMIN))
    app = console(directly(fleet.working), start="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        table = overview_of(app).needing
        found = lines(table)
        assert found["paused"] == ["‖ paused", "the queue (drain)", "12m", "disk swap (Ana Costa)"]
        assert "nobody has done the duties" in found["duty-all of them"][3]
        assert list(found)[:2] == ["paused", "duty-all of them"]

        await press(pilot, "down", "enter")
        await until(lambda: app.pane.crumb == "Duties", "the duties")
        assert "approvals" in shown_text(app)
        await press(pilot, "escape")
        await press(pilot, "home", "enter")
        assert list_of(app).kind.name == "jobs-waiting"
        await press(pilot, "escape")
        assert app.pane is overview_of(app)


async def test_numbers_lead_to_the_jobs_they_count(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        found = lines(overview_of(app).going)
        assert found["pool"][:2] == ["online", "6 of 9"]
        assert (found["failed"][1], found["failed"][3]) == ("2", "1 failed, 1 dead letter")
        assert found["completed"][1:] == ["-", "·" * len(found["completed"][2]), "measured from now on"]

        await press(pilot, "tab", "down", "down", "down", "enter")
        assert list_of(app).kind.name == "jobs-failed"
        assert "2 failed and dead letters" in shown_text(app)
        await press(pilot, "escape", "home", "enter")
        assert list_of(app).kind.name == "agents"


def mend(fleet: Fleet) -> None:
    do_the_duties(fleet)
    for statement in MEND:
        fleet.execute(statement)


async def test_when_all_is_well_it_says_so(story: Fleet) -> None:
    mend(story)
    app = console(directly(story.working), start="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        assert "✓ All is well" in shown_text(app)
        assert "Nothing needs you." in shown_text(app)


async def test_hostile_words_are_shown_as_harmless_text(fleet: Fleet) -> None:
    fleet.add_jobs(len(HOSTILE), status="dead_letter", since="2100-01-01")
    jobs = fleet.execute("select id from jobs where type = 'bulk' order by id desc")
    for (job_id,), text in zip(jobs, HOSTILE.values(), strict=True):
        word = storable(text)[:60] or "-"
        fleet.execute("update jobs set error_message = %s, type = %s where id = %s", word, f"-{word}"[:60], job_id)
    app = console(directly(fleet.working), start="overview")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        seen = shown_text(app)
        await press(pilot, "end")
        seen += shown_text(app)

        assert r"\x1b]52;c" in seen
        assert dangers(seen.replace("\n", "")) == []


async def test_a_lost_connection_leaves_a_gap_and_the_last_that_was_known(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "SAMPLE_SECONDS", 3600.0)
    token, clock = fleet.token(ADMIN), SteppingClock(AT)
    do_the_duties(fleet)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(serving(fleet.working))
        app = console(through(url, token), clock=clock, start="overview")
        pilot = await stack.enter_async_context(app.run_test(size=(80, 24)))
        await loaded(pilot)
        pane = overview_of(app)
        clock.now = AT + timedelta(seconds=5)
        await pilot.press("r")
        await until(lambda: lines(pane.going)["completed"][1] == "0.0/min", "a rate, after the second look")
        assert len(pane.history.rates("completions")) == 1
        assert lines(pane.going)["claim-wait"][3] == "nothing was claimed"
        before = lines(pane.needing)

        await first.aclose()
        await pilot.press("r")
        await until(lambda: app.link.status.state is LinkState.LOST, "lost")
        clock.now = AT + timedelta(minutes=2)
        await until(lambda: pane.needing.stale and pane.going.stale, "dimmed")
        assert list(lines(pane.needing)) == list(before)
        await until(lambda: "Needs attention 2   as of 1m ago" in shown_text(app), "how old it is")

        await stack.enter_async_context(serving(fleet.working, port=urlsplit(url).port or 0))
        await until(lambda: app.link.status.state is LinkState.UP, "up again")
        await until(lambda: pane.history.samples[-1].at == clock.now, "another look")
        assert len(pane.history.rates("completions")) == 1, "nobody knows what was between"
        course = lines(pane.going)["completed"][2]
        assert ("▁" in course, course[0], course[-1]) == (True, "·", "·")


async def test_what_can_not_be_asked_stays_told_and_is_not_asked_every_second(
    fleet: Fleet, nobody_looks_again: None
) -> None:
    do_the_duties(fleet)
    warden = Warden(directly(fleet.working), refused={"duties.list"})
    app = console(warden, start="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        pane = overview_of(app)
        await until(lambda: "not-known" in lines(pane.needing), "what is not known")
        asked = len(warden.of("duties.list"))

        for _ in range(3):
            pane.tick()
            await pilot.pause()
            assert "not-known" in lines(pane.needing)

        assert len(warden.of("duties.list")) == asked

"""What others do is on the screen within a second, and the operator's place in the list stays."""

import pytest

from agent_console.domain.jobs import NewJob
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import Topic
from agent_console.tui.app import STEP_SECONDS
from agent_console.tui.link import Opening
from tests.support.fleet import Fleet
from tests.tui_console.conftest import BOTH_WAYS, SomebodyElse
from tests.tui_console.stage import (
    all_jobs,
    announce,
    cells,
    console,
    header_text,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
)

pytestmark = pytest.mark.usefixtures("nobody_looks_again")

REPORT = NewJob(type="report", payload={})
LATER_THAN_THE_FLEET = "2100-01-01"
END_ALL_WORK = """
    update jobs
       set status = 'succeeded', finished_at = now(), claimed_by = null, lease_expires_at = null,
           lease_seconds = null, look_at = null
     where status in ('assigned', 'running')
"""


@pytest.mark.rule("U000-10")
def test_what_is_told_is_acted_on_well_within_a_second() -> None:
    assert STEP_SECONDS <= 0.5


@BOTH_WAYS
async def test_a_job_somebody_else_creates_appears_within_a_second(
    opening: Opening, somebody_else: SomebodyElse
) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot, somebody_else() as other:
        await loaded(pilot)
        await press(pilot, "3")

        made = await other.call(JOBS_CREATE, REPORT)

        await until(lambda: str(made.id) in row_ids(list_of(app)), "the new job")
        assert cells(list_of(app), str(made.id))[:2] == ["○ queued", "report"]


@BOTH_WAYS
async def test_the_cursor_stays_on_its_job_while_jobs_come_in_above(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "down", "down", "down")
        table = list_of(app).table
        job, line, count = table.cursor_id, table.cursor_index, len(table.source)

        fleet.add_jobs(7, since=LATER_THAN_THE_FLEET)
        announce(fleet, Topic.JOBS)

        await until(lambda: len(table.source) == count + 7, "the new jobs")
        assert table.cursor_id == job
        assert line is not None
        assert table.cursor_index == line + 7
        assert table.cursor_index - table.scroll_offset.y == line
        await until(lambda: "↑ 7 above" in shown_text(app), "a word about what is out of sight")


@BOTH_WAYS
async def test_more_new_jobs_than_a_page_begin_the_list_anew(fleet: Fleet, opening: Opening) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")

        fleet.add_jobs(300, since=LATER_THAN_THE_FLEET)
        announce(fleet, Topic.JOBS)

        newest = all_jobs(fleet)
        await until(lambda: row_ids(list_of(app))[0] == newest[0], "the newest job")
        shown = row_ids(list_of(app))
        assert shown == newest[: len(shown)]


@BOTH_WAYS
async def test_marks_survive_a_refresh(opening: Opening, somebody_else: SomebodyElse) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot, somebody_else() as other:
        await loaded(pilot)
        await press(pilot, "3", "space", "down", "space")
        marks = list_of(app).table.marks

        made = await other.call(JOBS_CREATE, REPORT)
        await until(lambda: str(made.id) in row_ids(list_of(app)), "the refresh")

        assert len(marks) == 2
        assert list_of(app).table.marks == marks


@pytest.mark.rule("U000-10", "U000-12")
@BOTH_WAYS
async def test_the_pool_badge_follows_within_a_second(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert "● 6 running" in header_text(app)

        fleet.execute(END_ALL_WORK)
        announce(fleet, Topic.JOBS)
        await until(lambda: "◌ 6 idle" in header_text(app), "idle")

        fleet.execute("update agent_runtime set presence = 'offline', error_message = null")
        announce(fleet, Topic.AGENTS)
        await until(lambda: "○ Offline" in header_text(app), "offline")

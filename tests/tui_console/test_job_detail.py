"""One job, whole: why it waits, and its story as it goes on."""

import pytest
from textual.pilot import Pilot

from agent_console.domain.ids import JobEventId, JobId
from agent_console.domain.job_acts import JobCancelling
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import QueuePausing
from agent_console.repository.operations.job_acts import JOBS_CANCEL
from agent_console.repository.operations.pausing import QUEUE_PAUSE
from agent_console.repository.port import Change, Topic
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.jobs.story import STORY
from agent_console.tui.panes.jobs.why import WHY
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import AT, Fleet
from tests.tui_console.conftest import SomebodyElse
from tests.tui_console.stage import console, directly, has_detail, list_of, loaded, press, shown_text, until

TALL = (100, 60)
WHY_TITLE = "why it is not running"


def section(text: str, title: str) -> str:
    """From a title to the next blank line."""
    return text.partition(f"\n {title}")[2].partition("\n\n")[0]


def tell(fleet: Fleet, job_id: JobId, message: str, level: str = "info") -> None:
    fleet.execute(
        "insert into job_events (team_id, id, job_id, level, message, created_at) values (%s, %s, %s, %s, %s, %s)",
        *(fleet.team_id(), JobEventId.new(), job_id, level, message, AT),
    )


async def open_job(app: ConsoleApp, pilot: Pilot[None], job_id: JobId) -> None:
    await loaded(pilot)
    await press(pilot, "3")
    assert list_of(app).table.move_to(str(job_id))
    await pilot.press("enter")
    await until(lambda: app.detail is not None and has_detail(app), "the detail of the job")
    await pilot.pause()


async def test_a_waiting_job_says_why_it_waits_and_for_whom(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=TALL) as pilot:
        await open_job(app, pilot, first_report(fleet))

        lines = [" ".join(line.split()) for line in section(shown_text(app), WHY_TITLE).splitlines()]
        assert lines[1].startswith("1 is ahead in its lane; 1 agent is free to take it")
        assert lines[2:5] == [
            "lane jobs of type report for agents with tool:report",
            "ahead of it 1",
            "could take it 1 free, 1 offline",
        ]
        assert lines[5].startswith("● free cartographer")
        assert lines[6].startswith("○ offline iris")


def first_report(fleet: Fleet) -> JobId:
    found = fleet.one("select id from jobs where type = 'report' and status = 'queued' order by id limit 1")
    assert hasattr(found, "int")
    return JobId(int=found.int)


async def test_a_job_that_runs_is_not_asked_why_it_does_not(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=TALL) as pilot:
        await open_job(app, pilot, fleet.first_job("running"))

        assert WHY_TITLE not in shown_text(app)
        assert "story" in shown_text(app)


@pytest.mark.usefixtures("nobody_looks_again")
async def test_a_job_that_goes_back_to_the_queue_says_why_at_once(
    opening: Opening, fleet: Fleet, somebody_else: SomebodyElse
) -> None:
    app = console(opening)
    async with app.run_test(size=TALL) as pilot, somebody_else() as other:
        await open_job(app, pilot, fleet.first_job("running"))

        await other.call(QUEUE_PAUSE, QueuePausing(mode=PauseMode.QUIESCE, reason="disk swap"))

        await until(lambda: "paused (quiesce)" in section(shown_text(app), WHY_TITLE), "why it waits now")
        await until(lambda: "disk swap" in section(shown_text(app), "story"), "that it was given back")


@pytest.mark.usefixtures("nobody_looks_again")
async def test_what_somebody_does_to_it_is_told_at_once(
    opening: Opening, fleet: Fleet, somebody_else: SomebodyElse
) -> None:
    job_id = fleet.first_job("queued")
    app = console(opening)
    async with app.run_test(size=TALL) as pilot, somebody_else() as other:
        await open_job(app, pilot, job_id)
        assert WHY_TITLE in shown_text(app)

        await other.call(JOBS_CANCEL, JobCancelling(job_id=job_id, reason="not needed"))

        await until(
            lambda: "Ana Costa: queued to cancelled" in section(shown_text(app), "story"), "the cancellation"
        )
        await until(lambda: WHY_TITLE not in shown_text(app), "nothing waits any more")


async def test_the_last_twenty_lines_are_shown_newest_first(opening: Opening, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    for number in range(1, 26):
        tell(fleet, job_id, f"line {number}", "warn" if number == 25 else "info")
    tell(fleet, job_id, "it broke", "error")
    app = console(opening)
    async with app.run_test(size=TALL) as pilot:
        await open_job(app, pilot, job_id)

        lines = [line.split() for line in section(shown_text(app), "story").splitlines()[1:]]
        assert lines[0] == ["03-01", "03:00:00", "✗", "error", "it", "broke"]
        assert lines[1] == ["03-01", "03:00:00", "!", "warn", "line", "25"]
        assert [line[-1] for line in lines[1:20]] == [str(number) for number in range(25, 6, -1)]
        assert lines[20][:2] == ["Earlier", "lines:"]


async def test_a_story_of_many_pages_is_read_to_its_end(fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    fleet.execute(
        "insert into job_events (team_id, id, job_id, message)"
        " select %s, (lpad(to_hex(n), 12, '0') || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid, %s, 'line ' || n"
        "   from generate_series(1, 1100) as n",
        *(fleet.team_id(), job_id),
    )
    app = console(directly(fleet.working))
    async with app.run_test(size=TALL) as pilot:
        await open_job(app, pilot, job_id)

        told = section(shown_text(app), "story")
        assert "line 1100" in told.splitlines()[1]
        assert "Earlier lines" in told


async def test_what_others_wrote_is_harmless_in_the_story(fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    for words in ("csi clear screen", "click action", "osc 52 clipboard, ST"):
        tell(fleet, job_id, HOSTILE[words][:60])
    app = console(directly(fleet.working))
    async with app.run_test(size=TALL) as pilot:
        await open_job(app, pilot, job_id)

        shown = shown_text(app)
        assert "[@click=" in section(shown, "story")
        assert r"\x1b[" in section(shown, "story")
        assert dangers(shown.replace("\n", "")) == []


def test_the_story_of_another_job_is_nothing_to_it(fleet: Fleet) -> None:
    mine, other = str(fleet.first_job("running")), str(fleet.first_job("queued"))

    touched = [STORY.is_touched_by(Change(topic=Topic.JOBS, id=whose), mine) for whose in (mine, None, other)]

    assert touched == [True, True, False]
    assert WHY.is_touched_by(Change(topic=Topic.AGENTS, id=other), mine)

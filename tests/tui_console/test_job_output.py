"""What an agent says of its job comes to whoever looks at it, by itself, and as much of it as one wants."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from textual.pilot import Pilot

from agent_console.domain.ids import JobEventId, JobId
from agent_console.domain.job_events import JobEvent
from agent_console.domain.jobs import Job, JobAsked
from agent_console.domain.kinds import EventLevel
from agent_console.domain.records import Page
from agent_console.domain.working import EventLine, JobLines, JobProgress
from agent_console.repository.operations import JOBS_GET
from agent_console.repository.operations.working import JOBS_LOG, JOBS_PROGRESS
from agent_console.repository.port import Repository
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.jobs.lists import job_news
from agent_console.tui.panes.jobs.screen import JobScreen
from agent_console.tui.panes.jobs.story import SHOWN, StorySoFar, story_text
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.acting_agent import acting_agent
from tests.support.fleet import AT, Fleet
from tests.tui_console.conftest import BOTH_WAYS, SomebodyElse
from tests.tui_console.stage import cells, console, has_detail, list_of, loaded, press, shown_text, until

TALL = (100, 60)


@pytest.fixture
def job_id(fleet: Fleet) -> JobId:
    """What atlas is doing."""
    found = fleet.one(
        "select j.id from jobs j join agents a on a.team_id = j.team_id and a.id = j.agent_id"
        " where a.name = 'atlas' and j.status = 'running'"
    )
    assert hasattr(found, "int")
    return JobId(int=found.int)


@pytest.fixture
async def atlas(somebody_else: SomebodyElse, fleet: Fleet) -> AsyncIterator[Repository]:
    """An agent that reports through the same kind of repository as the console looks through."""
    async with somebody_else() as other, acting_agent(other, fleet, "atlas") as agent:
        yield agent


async def say(atlas: Repository, job_id: JobId, level: EventLevel, message: str) -> None:
    await atlas.call(
        JOBS_LOG, JobLines(job_id=job_id, attempt=1, events=(EventLine(level=level, message=message),))
    )


async def open_job(app: ConsoleApp, pilot: Pilot[None], job_id: JobId) -> JobScreen:
    await loaded(pilot)
    await press(pilot, "3")
    assert list_of(app).table.move_to(str(job_id))
    await pilot.press("enter")
    await until(lambda: app.detail is not None and has_detail(app), "the detail of the job")
    assert isinstance(app.detail, JobScreen)
    return app.detail


def story(app: ConsoleApp) -> str:
    return shown_text(app).partition("\n story")[2].partition("\n\n")[0]


@pytest.mark.rule("U000-2", "U001-9")
@pytest.mark.usefixtures("nobody_looks_again")
@BOTH_WAYS
async def test_progress_and_output_are_told_and_never_asked_for(
    opening: Opening, job_id: JobId, atlas: Repository
) -> None:
    """Nobody looks again here: what is on the screen was pushed."""
    app = console(opening)
    async with app.run_test(size=TALL) as pilot:
        await loaded(pilot)
        await press(pilot, "3")

        await atlas.call(JOBS_PROGRESS, JobProgress(job_id=job_id, attempt=1, stage="sorting", percentage=77))
        await until(lambda: " 77% " in cells(list_of(app), str(job_id))[3], "the progress in the list")

        assert list_of(app).table.move_to(str(job_id))
        await press(pilot, "enter")
        await say(atlas, job_id, EventLevel.WARN, "the disk is nearly full")
        await until(lambda: "! warn" in story(app) and "nearly full" in story(app), "the line in the story")
        await atlas.call(JOBS_PROGRESS, JobProgress(job_id=job_id, attempt=1, stage="packing", percentage=78))
        await until(lambda: "packing" in shown_text(app), "the progress in the detail")


@pytest.mark.rule("U001-11")
async def test_output_is_narrowed_to_what_is_bad_held_still_and_copied(
    opening: Opening, job_id: JobId, atlas: Repository
) -> None:
    app = console(opening)
    async with app.run_test(size=TALL, notifications=True) as pilot:
        await open_job(app, pilot, job_id)
        await press(pilot, "f", "f")
        await until(lambda: "No line is error." in story(app), "that there is none")
        await press(pilot, "f")
        for level in EventLevel:
            await say(atlas, job_id, level, f"one {level.value}")
        await until(lambda: all(f"one {level.value}" in story(app) for level in EventLevel), "all of them")

        await press(pilot, "f")
        await until(lambda: "only warn or error" in story(app) and "one warn" in story(app), "warn and worse")
        assert "one info" not in story(app)
        await say(atlas, job_id, EventLevel.INFO, "two info")
        await say(atlas, job_id, EventLevel.ERROR, "two error")
        await until(lambda: "two error" in story(app), "a new line of that level")
        assert "two info" not in story(app)

        await press(pilot, "f")
        await until(lambda: "only error" in story(app) and "two error" in story(app), "errors")
        assert "warn" not in story(app)

        await press(pilot, "f")
        await until(lambda: "two info" in story(app), "everything again")

        await press(pilot, "p")
        await say(atlas, job_id, EventLevel.INFO, "three")
        await until(lambda: "‖ paused" in story(app) and "‖ 1 new" in story(app), "held still")
        assert "three" not in story(app)
        await until(lambda: "p Follow" in shown_text(app), "what the key does now")

        await press(pilot, "p")
        await until(lambda: "three" in story(app) and "paused" not in story(app), "followed again")
        await until(lambda: "p Pause" in shown_text(app), "what the key does then")

        await press(pilot, "c")
        words = "The output was sent to your terminal."
        await until(lambda: any(note.message == words for note in app._notifications), "what is known of it")


def line(number: int, message: str = "") -> JobEvent:
    return JobEvent(
        id=JobEventId(int=number),
        seq=number,
        level=EventLevel.INFO,
        message=message or f"line {number}",
        payload=None,
        attempt=1,
        created_by_user_id=None,
        created_by=None,
        created_at=AT,
    )


def page_of(numbers: range) -> Page[JobEvent]:
    return Page[JobEvent](items=tuple(map(line, numbers)))


def test_however_much_comes_while_nobody_follows_it_is_counted_and_only_the_end_of_it_kept() -> None:
    story_so_far = StorySoFar(lines=(line(1), line(2)))

    held = story_so_far.followed_by(page_of(range(3, 1000)), following=False)
    held = held.followed_by(page_of(range(1000, 1003)), following=False)
    followed = held.followed_by(page_of(range(1003, 1004)))

    assert (held.lines, held.unseen_count, len(held.unseen)) == (story_so_far.lines, 1000, SHOWN)
    assert [event.seq for event in followed.lines] == list(range(1004 - SHOWN, 1004))
    assert (followed.earlier, followed.unseen_count, followed.unseen) == (True, 0, ())


def test_what_is_copied_is_what_is_shown_and_harmless() -> None:
    copied = story_text(StorySoFar(lines=(line(1, "first"), line(2, HOSTILE["osc 52 clipboard, ST"][:60]))))

    first, second = copied.splitlines()

    assert first == "03-01 03:00:00  · info  first"
    assert second.startswith("03-01 03:00:00  · info  ")
    assert dangers(copied.replace("\n", "")) == []


async def test_a_lease_counts_down_when_it_nears_its_end(
    opening: Opening, job_id: JobId, somebody_else: SomebodyElse
) -> None:
    async with somebody_else() as other:
        job: Job = await other.call(JOBS_GET, JobAsked(job_id=job_id))
    assert job.lease_expires_at is not None

    left = (61, 59, 1, 0)
    shown = [job_news(job, job.lease_expires_at - timedelta(seconds=seconds)).plain for seconds in left]

    assert [" ".join(words.split()) for words in shown] == [
        "45% ████░░░░ scanning",
        "45% ████░░░░ lease 59s scanning",
        "45% ████░░░░ lease 1s scanning",
        "45% ████░░░░ lease over scanning",
    ]

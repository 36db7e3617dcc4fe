"""The link: what it tells, what it refuses, and how it heals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from agent_console.domain.errors import CannotConnect, ConsoleError, DatabaseUnavailable, NotFound, TimedOut
from agent_console.domain.jobs import JobQuery
from agent_console.domain.records import Nothing
from agent_console.repository.operations import JOBS_LIST, ME, POOL_STATUS
from agent_console.repository.port import Change, Repository, Topic
from agent_console.tui import link
from agent_console.tui.link import Link, LinkState, LinkStatus, pause_after
from tests.support.fleet import AT
from tests.tui_console.other_side import MYSELF, OtherSide, Watched
from tests.tui_console.stage import Say, until

UP = LinkStatus(LinkState.UP)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PAUSE_SECONDS", (0.01, 0.02))


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    watched.link.start(watched.opening)
    yield watched
    await watched.link.close()


def is_up(watched: Watched) -> bool:
    return watched.link.status.state is LinkState.UP


async def test_it_starts_says_how_far_it_is_and_comes_up(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")

    assert watched.told == [LinkStatus(LinkState.STARTING, "Opening …"), UP]
    assert watched.link.me == MYSELF
    assert watched.link.answered_at == AT


async def test_it_hears_before_it_is_up_and_passes_on_what_comes_then(watched: Watched) -> None:
    news = Change(topic=Topic.JOBS, id="job_1")
    await until(lambda: is_up(watched), "up")
    heard_before = list(watched.heard)

    watched.side.news.put_nowait(news)

    await until(lambda: watched.heard == [news], "the news")
    assert heard_before == [], "whoever is told that it is up fetches all; a word to fetch again would double that"


async def test_a_call_that_finds_nobody_loses_the_link_and_says_why(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    watched.side.refusing = DatabaseUnavailable("PostgreSQL is gone.", hint="Start it.")

    with pytest.raises(DatabaseUnavailable):
        await watched.link.call(ME, Nothing())

    assert watched.link.status == LinkStatus(LinkState.LOST, "PostgreSQL is gone.", "Start it.")


async def test_one_slow_question_is_told_once_and_loses_nothing_while_the_rest_is_answered(
    watched: Watched,
) -> None:
    await until(lambda: is_up(watched), "up")
    watched.side.thawed.set()
    watched.side.asked.clear()

    for _ in range(3):
        with pytest.raises(TimedOut):
            await watched.link.call(POOL_STATUS, Nothing())
    await until(lambda: ME.name in watched.side.asked, "who one is")

    assert watched.told[1:] == [UP]
    assert watched.side.asked.count(POOL_STATUS.name) == 1, "the same is not asked again at once"
    assert [str(error) for error in watched.late] == ["That took too long."]
    with pytest.raises(TimedOut):
        await watched.link.call(JOBS_LIST, JobQuery())
    assert JOBS_LIST.name in watched.side.asked, "something else is"


async def test_a_slow_question_is_asked_again_after_a_while(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "LATE_SECONDS", 0.0)
    await until(lambda: is_up(watched), "up")
    watched.side.thawed.set()

    for _ in range(2):
        with pytest.raises(TimedOut):
            await watched.link.call(POOL_STATUS, Nothing())

    assert watched.side.asked.count(POOL_STATUS.name) == 2


async def test_it_is_lost_when_nobody_says_who_one_is_either(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    watched.side.refusing = TimedOut("Nobody says a word.")
    watched.side.thawed.set()

    with pytest.raises(TimedOut):
        await watched.link.call(POOL_STATUS, Nothing())

    await until(lambda: watched.link.status.state is LinkState.LOST, "lost")
    assert watched.link.status.message == "Nobody says a word."
    watched.side.refusing = None
    await until(lambda: is_up(watched), "up again")


async def test_a_refusal_of_the_question_itself_does_not_lose_the_link(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    watched.side.refusing = NotFound("No such job.")

    with pytest.raises(NotFound):
        await watched.link.call(ME, Nothing())

    assert is_up(watched)


async def lose(watched: Watched, error: ConsoleError) -> None:
    watched.side.refusing = error
    with suppress(ConsoleError):
        await watched.link.call(ME, Nothing())


async def test_while_it_is_lost_nothing_is_sent(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PAUSE_SECONDS", (60.0,))
    await until(lambda: is_up(watched), "up")
    await lose(watched, CannotConnect("Nobody answers."))
    await until(lambda: watched.link.status.retries == 1, "the first probe")
    watched.side.asked.clear()

    with pytest.raises(CannotConnect, match="no connection right now"):
        await watched.link.call(ME, Nothing())

    assert watched.side.asked == []


async def test_it_counts_its_retries_and_heals_by_itself(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    await lose(watched, CannotConnect("Nobody answers."))
    await until(lambda: watched.link.status.retries >= 2, "two retries")

    watched.side.refusing = None

    await until(lambda: is_up(watched), "up again")
    counted = [status.retries for status in watched.told if status.message == "Nobody answers."]
    assert counted == list(range(len(counted)))
    assert len(counted) >= 3
    assert watched.told[-1] == UP


async def test_after_several_probes_everything_is_opened_anew(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    await lose(watched, CannotConnect("Nobody answers."))

    await until(lambda: len(watched.asked_before_opening) == 2, "opened anew")

    assert watched.ended == 1
    assert watched.asked_before_opening == [0, 2 + link.PROBES_BEFORE_OPENING_ANEW]


async def test_an_answer_that_comes_after_the_healing_does_not_lose_the_link_again(watched: Watched) -> None:
    await until(lambda: is_up(watched), "up")
    frozen = asyncio.create_task(watched.link.call(POOL_STATUS, Nothing()))
    await until(lambda: POOL_STATUS.name in watched.side.asked, "asked")
    await lose(watched, CannotConnect("Nobody answers."))
    watched.side.refusing = None
    await until(lambda: is_up(watched), "up again")
    watched.told.clear()

    watched.side.thawed.set()
    with pytest.raises(TimedOut):
        await frozen

    assert is_up(watched)
    assert watched.told == []


async def test_opening_that_fails_is_tried_again_with_its_reason_told() -> None:
    told: list[LinkStatus] = []
    failures = [DatabaseUnavailable("No space left."), OSError("boom")]

    @asynccontextmanager
    async def opening(say: Say) -> AsyncIterator[Repository]:
        if failures:
            raise failures.pop(0)
        yield OtherSide()

    opened = Link(on_status=told.append, on_change=lambda change: None, clock=lambda: AT)
    opened.start(opening)
    await until(lambda: opened.status.state is LinkState.UP, "up")
    await opened.close()

    assert [(status.message, status.retries) for status in told] == [
        ("No space left.", 1),
        ("A fault of this program: OSError.", 2),
        ("", 0),
    ]


async def test_a_side_that_answers_but_tells_nothing_is_not_asked_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "PAUSE_SECONDS", (60.0,))
    watched = Watched(OtherSide(deaf=TimedOut("The stream does not open.")))
    watched.link.start(watched.opening)
    await until(lambda: is_up(watched), "up")

    for _ in range(50):
        await asyncio.sleep(0)

    assert watched.side.asked == [ME.name]
    assert is_up(watched)
    await watched.link.close()


async def test_closing_waits_for_the_end_of_what_was_opened() -> None:
    watched = Watched(slow_end=asyncio.Event())
    watched.link.start(watched.opening)
    await until(lambda: is_up(watched), "up")

    closing = asyncio.create_task(watched.link.close())
    closing_again = asyncio.create_task(watched.link.close())
    done, _ = await asyncio.wait({closing, closing_again}, timeout=0.05)
    assert not done, "closed before the end"
    assert watched.slow_end is not None
    watched.slow_end.set()
    await asyncio.gather(closing, closing_again)

    assert watched.ended == 1


async def test_what_was_closed_before_it_was_started_is_not_started() -> None:
    watched = Watched()
    await watched.link.close()

    watched.link.start(watched.opening)

    assert not watched.link.is_started


def test_the_pauses_grow_and_stay_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PAUSE_SECONDS", (0.5, 1.0, 8.0))

    assert [pause_after(failures) for failures in range(6)] == [0.5, 0.5, 1.0, 8.0, 8.0, 8.0]

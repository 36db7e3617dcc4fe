"""The count in the header of every pane, and the bell for those who look elsewhere."""

from datetime import timedelta

import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import AppBlur, AppFocus

from agent_console.tui import waiting_count
from agent_console.tui.waiting_count import Doorbell, WaitingCount
from agent_console.tui.widgets.header import HeaderFacts, header_line
from tests.support.fleet import AT, Fleet
from tests.tui_console.approval_stage import STATIONS, at, desk, tell
from tests.tui_console.stage import SteppingClock, header_text, press, until
from tests.tui_console.test_approval_bulk import ask_again

BELL = "\a"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been written to the terminal."""
    said: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "write", lambda _driver, data: said.append(data))
    monkeypatch.setenv("TERM", "xterm-256color")
    return said


@pytest.mark.parametrize(
    ("count", "more", "words"),
    [(0, False, ""), (1, False, "1 approval "), (99, False, "99 approvals"), (100, True, "> 99 approvals"),
     (3, True, "≥ 3 approvals")],
)  # fmt: skip
def test_the_header_tells_what_waits_and_says_when_it_is_more(count: int, more: bool, words: str) -> None:
    facts = HeaderFacts("night", production=False, read_only=False, waiting=WaitingCount(count, more))

    line = header_line(facts, 80).plain

    assert ("◆" in line) == bool(words)
    assert words in line


def test_the_bell_rings_for_news_and_at_most_once_a_second() -> None:
    clock = SteppingClock(AT)
    bell = Doorbell(clock)

    at_the_start = bell.is_news(["a", "b"])
    fewer, another = bell.is_news(["b"]), bell.is_news(["b", "c"])
    rings = [bell.may_ring(), bell.may_ring()]
    clock.now += timedelta(seconds=1)
    rings.append(bell.may_ring())

    assert (at_the_start, fewer, another) == (False, False, True)
    assert rings == [True, False, True]


def test_what_only_comes_up_among_the_first_is_no_news() -> None:
    bell = Doorbell(SteppingClock(AT))

    bell.is_news(["b", "c"], more=True)
    came_up, made = bell.is_news(["a", "b"], more=True), bell.is_news(["b", "d"], more=True)
    last_of_them = bell.is_news(["aa", "b"])
    late_from_elsewhere = bell.is_news(["aa", "ab"])

    assert (came_up, made, last_of_them, late_from_elsewhere) == (False, True, False, True)


async def test_a_terminal_that_says_nothing_of_its_focus_rings_for_who_has_pressed_no_key(
    story: Fleet, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(at(story)) as ana:
        await press(ana.pilot, "3")
        monkeypatch.setattr(waiting_count, "AWAY_SECONDS", 0.0)

        ask_again(story, STATIONS, 1)
        tell(story)
        await until(lambda: "◆ 3 approvals" in header_text(ana.app), "one more")
        assert written.count(BELL) == 1
        assert any("]2;(3)" in data for data in written)

        await ana.pilot.press("2")
        assert "\x1b[23;2t" in written, "the title that was there before"


async def test_the_title_counts_what_somebody_else_has_decided(story: Fleet, written: list[str]) -> None:
    async with desk(at(story)) as ana:
        ana.app.post_message(AppBlur())
        await until(lambda: not ana.app.app_focus, "nobody looks")
        ask_again(story, STATIONS, 1)
        tell(story)
        await until(lambda: any("]2;(3)" in data for data in written), "three")

        story.execute("delete from approvals where id = (select max(id::text)::uuid from approvals)")
        tell(story)

        await until(lambda: any("]2;(2)" in data for data in written), "two")


async def test_who_looks_elsewhere_is_called_and_the_title_is_given_back(story: Fleet, written: list[str]) -> None:
    async with desk(at(story)) as ana:
        await press(ana.pilot, "3")
        ask_again(story, STATIONS, 1)
        tell(story)
        await until(lambda: "◆ 3 approvals" in header_text(ana.app), "the count on another pane")
        assert BELL not in written

        ana.app.post_message(AppBlur())
        await until(lambda: not ana.app.app_focus, "nobody looks")
        ask_again(story, STATIONS, 2)
        tell(story)
        await until(lambda: "◆ 5 approvals" in header_text(ana.app), "two more")
        assert written.count(BELL) == 1
        assert [data for data in written if "]2;" in data] == [
            "\x1b[22;2t\x1b]2;(5) agent-console: 5 approvals to decide\x1b\\"
        ]
        ana.app.post_message(AppFocus())

        await until(lambda: "\x1b[23;2t" in written, "the title that was there before")


async def test_the_bell_can_be_silenced(story: Fleet, written: list[str]) -> None:
    async with desk(at(story)) as ana:
        await ana.pilot.press("B")
        await ana.sees("The bell is off.")
        ana.app.post_message(AppBlur())
        await until(lambda: not ana.app.app_focus, "nobody looks")

        ask_again(story, STATIONS, 1)
        tell(story)
        await until(lambda: "◆ 3 approvals" in header_text(ana.app), "one more")

        assert BELL not in written
        assert not any("]2;" in data for data in written)

"""What rains on a terminal: pastes of thousands of lines, and sizes that change while the list does.

One console without colour for all of it, so that whatever it showed was shown without.
"""

import re
from collections.abc import Iterator

import pytest

from tests.journeys.still_fleet import console_of, place, wait_until_connected
from tests.journeys.terminal import Terminal, wait_until
from tests.support.clusters import Cluster
from tests.support.fleet import Fleet
from tests.support.lending import Lending
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)

KEYS = "".join(f"aynr3q {number}\n" for number in range(4000))
"""Every line of it would do something, were it typed."""
COLOURLESS = {"NO_COLOR": "1"}
SIZES = ((60, 20), (200, 60), (40, 10), (120, 40), (81, 23), (60, 20), (199, 59), (80, 24))
# A colour of the foreground or the background, bright ones and those by number or by red, green and blue included.
COLOUR = re.compile(rb"\x1b\[(?:\d*;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d*)*m")
DONE = "select count(*) from audit_log", "select count(*) from approvals where state = 'pending'"


@pytest.fixture(scope="module")
def story(lending: Lending, postgres: Cluster, story_template: str) -> Iterator[Fleet]:
    with lending.lent(story_template) as name, Fleet(postgres.dsn(name)) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def shared(story: Fleet) -> Iterator[Terminal]:
    with console_of(story, environment=COLOURLESS) as opened:
        yield opened


@pytest.fixture
def console(shared: Terminal, story: Fleet, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    failed = request.session.testsfailed
    yield shared
    if request.session.testsfailed > failed:
        # Nobody knows where that test left it: the next one gets a new console, and fails for reasons of its own.
        shared.close()
        shared.start(*place(story), environment=COLOURLESS)
        wait_until_connected(shared)


def go_to_jobs(console: Terminal) -> None:
    console.press("3", "Home")
    console.wait_for("30 all jobs", "▸  ◑ assigned")


def test_a_list_takes_no_key_from_a_paste(console: Terminal, story: Fleet) -> None:
    go_to_jobs(console)

    console.paste(KEYS)
    console.press("Down")

    console.wait_for("30 all jobs", "▸  ○ queued")
    assert [story.one(asked) for asked in DONE] == [0, 2]


def test_a_filter_takes_a_paste_as_text_and_waits_for_enter(console: Terminal) -> None:
    go_to_jobs(console)
    console.press("/")
    console.wait_for("esc Leave")

    console.paste(f"type:report\n{KEYS}")
    console.wait_for("Filter type:report", "4,001 lines don't fit into one: only the first was kept.")
    assert "30 all jobs" in console.screen()
    console.press("Enter")
    console.wait_for("6 of all jobs match type:report")

    console.press("Escape")
    console.wait_for("30 all jobs")


def test_a_draft_loses_no_line_of_a_paste_and_sends_none_by_itself(console: Terminal, story: Fleet) -> None:
    said = "select content from messages where content like '%%aynr3q 3999%%'"
    console.press("4")
    console.wait_for("▸  Nightly build is red")
    console.press("Enter")
    console.wait_for("#5", "c Write")
    console.press("c")
    console.wait_for("F5 sends")

    console.paste(KEYS)
    console.wait_for("aynr3q 3999")
    assert story.execute(said) == []
    console.press("F5")
    wait_until(lambda: bool(story.execute(said)), console.screen)

    assert story.execute(said) == [(KEYS,)]
    console.wait_for("Ana Costa", "folded", "c Write")
    console.press("Escape")
    console.wait_for("Threads 3")


def test_sizes_that_change_while_the_list_does_leave_no_trace(console: Terminal, story: Fleet) -> None:
    go_to_jobs(console)
    moved = "update jobs set progress = jsonb_build_object('percentage', %s::int) where status = 'running'"

    for percentage, size in enumerate(SIZES * 3):
        console.resize(*size)
        story.execute(moved, percentage)
    # At the last size, in which everything has its whole name, and nothing of another one is left.
    console.wait_for("30 all jobs", " 23% ", "? Help", "0 Overview  1 Approvals", "✓ connected\n")

    seen = console.screen()
    console.press("C-l")
    console.press("Down")
    console.wait_for("▸  ○ queued")
    console.press("Up")
    console.wait_for("▸  ◑ assigned")
    assert console.screen() == seen


def test_without_colour_not_one_colour_was_sent(console: Terminal) -> None:
    console.press("?")
    console.wait_for("Esc closes")
    console.press("Escape")
    console.wait_without("Esc closes")

    assert COLOUR.findall(console.written()) == []

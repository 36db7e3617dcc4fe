"""What a request looks like and what is offered about it; and a list in an order of its own."""

from datetime import timedelta
from time import monotonic

import pytest

from agent_console.domain.ids import ApprovalId
from agent_console.domain.records import Page, Record
from agent_console.tui.far_clock import FarClock
from agent_console.tui.link import Link
from agent_console.tui.lists.cursor_list import CursorList
from agent_console.tui.panes.approvals.lists import first_line
from agent_console.tui.panes.approvals.looks import exactly, urgency
from agent_console.tui.panes.approvals.offer import GRACE_SECONDS, in_grace
from agent_console.tui.panes.surroundings import Surroundings


class Waiting(Record):
    id: ApprovalId


ROWS = tuple(Waiting(id=ApprovalId.new()) for _ in range(9))


def page(first: int, last: int, place: str | None) -> Page[Waiting]:
    return Page[Waiting](items=ROWS[first:last], next=place)


def test_pages_are_joined_where_the_other_side_said() -> None:
    loaded = CursorList[Waiting]().merged(None, page(0, 3, "p3"))

    further = loaded.merged("p3", page(3, 6, "p6")).merged("p6", page(6, 9, None))

    assert (loaded.complete, further.complete) == (False, True)
    assert further.records == ROWS
    assert [further.last_before(index) for index in (0, 2, 3, 5, 8)] == [None, None, "p3", "p3", "p6"]
    assert further.index_of(str(ROWS[4].id)) == 4
    assert (further.joint_below(None, 9), further.joint_below("p3", 6), further.joint_below("p6", 9)) == (
        "p3",
        None,
        None,
    )


def test_a_page_that_comes_again_replaces_its_stretch_and_keeps_the_rest() -> None:
    loaded = CursorList[Waiting]().merged(None, page(0, 3, "p3")).merged("p3", page(3, 9, None))

    gone = loaded.merged(None, Page[Waiting](items=(ROWS[0], ROWS[2], ROWS[3]), next="p4"))

    assert gone.records == (ROWS[0], *ROWS[2:])
    assert gone.complete
    assert gone.last_before(4) == "p4"


def test_a_page_from_a_place_that_is_no_longer_known_is_dropped() -> None:
    loaded = CursorList[Waiting]().merged(None, page(0, 3, "p3"))

    assert loaded.merged("elsewhere", page(6, 9, None)) == loaded


def test_what_lies_behind_an_unknown_end_is_asked_for_again() -> None:
    loaded = CursorList[Waiting]().merged(None, page(3, 6, None))

    begun_anew = loaded.merged(None, page(0, 3, "p3"))

    assert (begun_anew.records, begun_anew.complete) == (ROWS[:3], False)


@pytest.mark.parametrize(
    ("seconds", "words", "style"),
    [(-1, "0s", "$text-error bold"), (59, "59s", "$text-error bold"), (61, "1m 01s", "$text-warning bold"),
     (301, "5m 01s", ""), (3725, "1h 02m 05s", "")],
)  # fmt: skip
def test_a_countdown_is_exact_and_changes_its_colour_near_the_end(seconds: float, words: str, style: str) -> None:
    assert (exactly(seconds), urgency(seconds)) == (words, style)


def test_the_grace_is_half_a_second() -> None:
    just_before = GRACE_SECONDS - 0.01

    assert (in_grace(9.0, 9.0), in_grace(9.0, 9.0 + just_before), in_grace(9.0, 9.5)) == (True, True, False)


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_jumps_neither_skips_a_grace_nor_prolongs_it(jump: timedelta) -> None:
    clock = FarClock()
    link = Link(on_status=lambda status: None, on_change=lambda change: None, clock=clock)
    around = Surroundings(link, clock)
    since, shown = around.passed(), clock()

    clock.hear(shown + jump, monotonic(), monotonic())

    assert abs(clock() - shown) > timedelta(minutes=50)
    assert 0 <= around.passed() - since < 600


def test_blank_lines_do_not_hide_what_is_asked() -> None:
    assert first_line("\n \n\t\n  Delete it.\nAll.") == "Delete it."

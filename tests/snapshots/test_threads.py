"""Threads: the list, a conversation, what is written to it, who takes part and who asked whom in it."""

import pytest

from agent_console.tui.app import ConsoleApp
from tests.snapshots.conftest import NARROW, USUAL, WIDE, LooksRight, Sizes
from tests.support.conversations import add_thread, let_in, say_much
from tests.support.fleet import Fleet
from tests.tui_console.conversation_stage import thread_called
from tests.tui_console.stage import ADMIN, console, directly

REPORT = ("down", "enter")
STOCK = ("down", "down", "enter")


def threads(fleet: Fleet) -> ConsoleApp:
    return console(directly(fleet.working), start="threads")


def go_to(seq: int) -> tuple[str, ...]:
    return ("number_sign", *str(seq), "enter")


def test_the_list(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL)


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_a_conversation(looks_right: LooksRight, still_story: Fleet, size: Sizes) -> None:
    assert looks_right(threads(still_story), size, *REPORT)


def test_an_archived_conversation(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, "f", "f", "f", "enter")


def test_a_conversation_in_which_nothing_was_said(looks_right: LooksRight, story: Fleet) -> None:
    let_in(story, add_thread(story), ADMIN, write=True)

    assert looks_right(threads(story), USUAL, "end", "enter")


def test_a_gap_in_what_is_shown(looks_right: LooksRight, story: Fleet) -> None:
    """A jump so far back that what lies between is not held, and from there to its last message."""
    thread_id = thread_called(story, "Report of October")
    say_much(story, thread_id, 500)
    first = int(str(story.one("select max(seq) - 499 from messages where thread_id = %s", thread_id)))

    keys = (*REPORT, *go_to(first + 200), *go_to(first + 250), "down")
    assert looks_right(threads(story), USUAL, *keys)


def test_a_search(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, *STOCK, "slash", *"Aisle", "enter", "n")


def test_writing(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, *REPORT, "c", *"Thank", "enter", *"you")


def test_one_message_whole(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, *REPORT, "enter")


def test_who_takes_part(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, *REPORT, "p", "r")


def test_who_asked_whom(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(threads(still_story), USUAL, *REPORT, "t", "down")

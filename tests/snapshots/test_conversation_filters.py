"""Filters on threads and approvals: what is offered while one is typed, and what is shown when it hides all."""

from agent_console.tui.app import ConsoleApp
from tests.snapshots.conftest import USUAL, LooksRight
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly


def at(fleet: Fleet, pane: str) -> ConsoleApp:
    return console(directly(fleet.working), start=pane)


def typed(text: str) -> tuple[str, ...]:
    names = {":": "colon", " ": "space", "_": "underscore", "!": "exclamation_mark"}
    return ("slash", *(names.get(letter, letter) for letter in text))


def test_a_thread_filter_is_typed(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(at(still_story, "threads"), USUAL, *typed("status:open waiting:"))


def test_a_filter_hides_all_that_waits(looks_right: LooksRight, still_story: Fleet) -> None:
    assert looks_right(at(still_story, "approvals"), USUAL, *typed("from:atlas to:beacon"), "enter")

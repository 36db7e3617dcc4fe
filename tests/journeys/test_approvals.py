"""What waits for a person, decided by one: the real program, a real terminal, a real server and database."""

from collections.abc import Iterator

import pytest

from tests.journeys.terminal import Terminal, terminal, wait_until
from tests.support.clusters import reachable_folder

pytestmark = pytest.mark.xdist_group("journeys")


@pytest.fixture
def console() -> Iterator[Terminal]:
    with reachable_folder(in_memory=True) as folder, terminal(folder) as opened:
        yield opened


def press_until(console: Terminal, words: str, *keys: str) -> None:
    """Again and again, as people do when a key was too early to count."""

    def seen() -> bool:
        if words in console.screen():
            return True
        for key in keys:
            console.press(key)
        return False

    wait_until(seen, lambda: f"{words}\n{console.screen()}")


def test_one_is_approved_and_one_rejected_and_nothing_happens_by_itself(console: Terminal) -> None:
    console.start("demo")
    console.wait_for("✓ connected", "◆ 2 approvals")
    console.press("1")
    console.wait_for("2 waiting for a person", "cartographer → beacon")
    console.press("Enter")
    console.wait_for("second source", "begun by", "a approves once")

    console.paste("ay\nry\n")
    console.wait_for("Pasted text decides nothing.")
    console.press("a")
    console.wait_for("y approves, anything else doesn't")
    console.press("Enter")
    console.wait_for("Not approved.")
    console.press("a")
    console.wait_for("y approves, anything else doesn't")
    press_until(console, "✓ You approved it", "y")
    console.press("Escape")
    console.wait_for("1 waiting for a person", "◆ 1 approval ")

    console.press("Enter")
    console.wait_for("Deploy build 4812", "a approves once")
    console.press("r")
    console.wait_for("Reject dispatch → gantry", "Press y to reject")
    console.press("Not at night.")
    console.wait_for("Not at night.")
    press_until(console, "✗ You rejected it", "Enter", "y")
    console.wait_for("Not at night.")
    console.press("Escape")
    console.wait_for("Nothing waits for a person.")
    wait_until(lambda: "◆" not in console.screen(), console.screen)
    console.press("f")
    console.wait_for("5 decided", "✗ rejected", "✓ approved")

    console.press("q")
    console.wait_for_end(0)
    console.wait_for_nobody()

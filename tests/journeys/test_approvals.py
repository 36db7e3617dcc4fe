"""What waits for a person, decided by one: the real program, a real terminal, a real database."""

import pytest

from tests.journeys.still_fleet import VERA, ask_to_approve, begun_by, console_of, open_first_request
from tests.journeys.terminal import leave
from tests.support.fleet import Fleet
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)

ENDED = "select state::text from approvals where decided_by_user_id = %s order by decided_at limit 2"


def test_one_is_approved_and_one_rejected_and_nothing_happens_by_itself(story: Fleet) -> None:
    begun_by(story, VERA)
    with console_of(story) as console:
        console.wait_for("◆ 2 approvals")
        open_first_request(console)

        console.paste("ay\nry\n")
        console.wait_for("Pasted text decides nothing.")
        console.press("a")
        console.wait_for("y approves, anything else doesn't")
        console.press("Enter")
        console.wait_for("You did not approve it.")
        ask_to_approve(console)
        console.press("y")
        console.wait_for("✓ You approved it")
        console.press("Escape")
        console.wait_for("1 waiting for a person", "◆ 1 approval ")

        console.press("Enter")
        console.wait_for("Deploy build 4812", "a approves once")
        console.press("r")
        console.wait_for("Reject dispatch → gantry", "Press y to reject")
        console.press("Not at night.", "Enter")
        console.wait_for_reverse("Press y to reject")
        console.press("y")
        console.wait_for("✗ You rejected it", "Not at night.")
        console.press("Escape")
        console.wait_for("Nothing waits for a person.")
        console.wait_without("◆")
        console.press("f")
        console.wait_for("5 decided", "✗ rejected", "✓ approved")

        assert story.execute(ENDED, story.user_id("ana@example.com")) == [("approved",), ("rejected",)]
        leave(console)

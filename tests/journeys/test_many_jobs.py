"""Ten thousand jobs cancelled by one operator: counted first, watched, stopped, and gone on with."""

import re

import pytest

from tests.journeys.still_fleet import console_of
from tests.journeys.terminal import Terminal, leave, wait_until
from tests.support.fleet import Fleet
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)

MANY = 10_000
CANCELLED = (
    "select count(*) from jobs where type = 'bulk' and status = 'cancelled' and cancel_reason = 'not needed'"
)


def look_what_would_be_cancelled(console: Terminal) -> None:
    """From the list to the question: the form has the filter of the list, and is given a reason."""
    console.press("n")
    console.wait_for("Cancel many", "Enter choose")
    console.press("Down", "Down", "Enter")
    console.wait_for("Jobs: cancel many", "Enter: see what it would do")
    # Backwards from the first field: past the line that does it, to the last field.
    console.press("Up", "Up")
    console.wait_for("│ type:bulk ", "│ reason ")
    console.press("not needed")
    console.wait_for("│ not needed ")
    console.press("Enter")
    console.wait_for_reverse("Enter: see what it would do")
    console.press("Enter")


def done_on(console: Terminal) -> int:
    found = re.search(r"([\d,]+) done", console.screen())
    return int(found.group(1).replace(",", "")) if found else 0


def test_ten_thousand_jobs_are_counted_cancelled_stopped_and_gone_on_with(story: Fleet) -> None:
    story.add_jobs(MANY)
    with console_of(story) as console:
        console.press("3")
        console.wait_for("60+ all jobs")
        console.press("/")
        console.wait_for("esc Leave")
        console.press("type:bulk", "Enter")
        console.wait_for("60+ of all jobs match type:bulk", "○ queued")

        look_what_would_be_cancelled(console)
        console.wait_for("10,000 would be changed.", "Press y to cancel 10,000")
        assert story.one(CANCELLED) == 0
        console.press("y")
        wait_until(lambda: done_on(console) > 0, console.screen)
        console.press("Escape")
        console.wait_for("Stopped: what is left was not touched.")
        done = done_on(console)
        assert 0 < done < MANY
        assert story.one(CANCELLED) == done
        console.press("Escape")
        console.wait_without("Jobs: cancel many")

        look_what_would_be_cancelled(console)
        console.wait_for(f"{MANY - done:,} would be changed.")
        console.press("y")
        console.wait_for("% ")
        console.wait_for(f"✓ Done: {MANY - done:,} done, 0 refused, 0 left")
        assert story.one(CANCELLED) == MANY
        console.press("Escape")
        console.wait_without("Jobs: cancel many")
        leave(console)

"""Consoles on a fleet that stands still: what changes in it, an operator or the test has changed."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from agent_console.tui.panes.approvals.offer import GRACE_SECONDS
from tests.journeys.terminal import Terminal, terminal, wait_until
from tests.support.clusters import reachable_folder
from tests.support.fleet import Fleet

ANA, OLE, VERA = "ana@example.com", "ole@example.com", "vera@example.com"


def place(fleet: Fleet, email: str = ANA) -> tuple[str, ...]:
    """What the program is told about where to go and as whom."""
    return "--dsn", fleet.working, "--team", "example", "--user", email


@contextmanager
def console_of(
    fleet: Fleet, email: str = ANA, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Terminal]:
    """The real program at work for one operator, connected."""
    with reachable_folder() as folder, terminal(folder) as console:
        console.start(*place(fleet, email), environment=environment)
        wait_until_connected(console)
        yield console


def wait_until_connected(console: Terminal) -> None:
    console.wait_for("Needs attention", "✓ connected")


def begun_by(story: Fleet, email: str) -> None:
    """As if this person had begun everything: the others may decide it."""
    story.execute(
        "update runs set requested_by_user_id = %s where requested_by_type = 'human'", story.user_id(email)
    )


def open_first_request(console: Terminal) -> None:
    """Read what has the least time left, until it can be decided."""
    console.press("1")
    console.wait_for("2 waiting for a person", "▸  ◔")
    console.press("Enter")
    console.wait_for("second source", "begun by", "a approves once")


def ask_to_approve(console: Terminal) -> None:
    """Press the first of the two keys, and read the question for as long as a `y` would be too quick."""
    console.press("a")
    console.wait_for("y approves, anything else doesn't")
    asked = time.monotonic()
    wait_until(lambda: time.monotonic() - asked > GRACE_SECONDS, console.screen)

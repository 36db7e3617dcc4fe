"""The console where it is used: at the other end of a real SSH connection, which breaks."""

import shlex
import sys
from collections.abc import Iterator, Sequence

import pytest

from tests.journeys.ssh import SshServer, ssh_server
from tests.journeys.still_fleet import (
    VERA,
    ask_to_approve,
    begun_by,
    open_first_request,
    place,
    wait_until_connected,
)
from tests.journeys.terminal import CONSOLE, Terminal, leave, terminal, wait_until
from tests.support.clusters import reachable_folder
from tests.support.fleet import Fleet
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)

WAITING = "select count(*) from approvals where state = 'pending'"
LOST = 255
"""How ssh ends when its connection did."""


@pytest.fixture
def home() -> Iterator[Terminal]:
    """The operator's own terminal."""
    with reachable_folder() as folder, terminal(folder) as opened:
        yield opened


@pytest.fixture
def server(home: Terminal) -> Iterator[SshServer]:
    with ssh_server(home.folder) as running:
        yield running


def at_a_shell(command: Sequence[str]) -> tuple[str, ...]:
    """The operator runs it, sees how it ended, types a line, and runs it again."""
    typed = shlex.join(command)
    return "sh", "-c", f"{typed}; echo ENDED WITH $?; read word; echo TYPED $word; exec {typed}"


def consoles(home: Terminal) -> list[str]:
    return [command for command in home.processes().values() if command.startswith(sys.executable)]


def test_a_line_that_breaks_decides_nothing_and_the_next_one_goes_on(
    home: Terminal, server: SshServer, story: Fleet
) -> None:
    begun_by(story, VERA)
    there = {"AGENT_CONSOLE_DATA": str(home.data), "HOME": str(home.folder)}
    home.run(at_a_shell(server.command([*CONSOLE, *place(story)], there)))
    wait_until_connected(home)
    open_first_request(home)
    ask_to_approve(home)
    assert len(consoles(home)) == 1

    server.drop_connections()
    home.wait_for(f"ENDED WITH {LOST}")
    wait_until(lambda: not consoles(home), lambda: f"still there: {consoles(home)}")
    assert story.one(WAITING) == 2
    # Only when ssh has put the line back, a line is what is typed up to Enter.
    home.press("y again", "Enter")
    home.wait_for("TYPED y again")

    wait_until_connected(home)
    open_first_request(home)
    ask_to_approve(home)
    home.press("y")
    home.wait_for("✓ You approved it")
    assert story.one(WAITING) == 1
    home.press("Escape")
    home.wait_for("1 waiting for a person")
    leave(home)

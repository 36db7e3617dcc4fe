"""The demo as a person meets it: the real program, a real terminal, a real database."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.terminal import Terminal, terminal
from tests.support.clusters import reachable_folder

pytestmark = pytest.mark.xdist_group("journeys")

# Bounds with room for a machine that stands still for seconds: the figures themselves are measured in bench/.
FIRST_FRAME_WITHIN = 15.0
HEALS_WITHIN = 60.0
READY = ("✓ connected", "atlas")
QUIET = "0 0 1"
"""No mouse, and a cursor."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Path]:
    """A folder that is home and data of every journey; the first one makes the database."""
    with reachable_folder(in_memory=True) as folder:
        yield folder


@pytest.fixture
def console(machine: Path) -> Iterator[Terminal]:
    with terminal(machine) as opened:
        yield opened


def start_demo(console: Terminal) -> None:
    """Up to the list of agents; the first thing one sees is what needs attention."""
    console.start("demo")
    console.wait_for("Needs attention", "✓ connected")
    console.press("2")
    console.wait_for(*READY)


def leave(console: Terminal) -> None:
    console.press("q")
    console.wait_for_end(0)
    console.wait_for_nobody()
    assert console.modes() == QUIET


def test_a_first_look_around(console: Terminal) -> None:
    console.start("demo")
    console.wait_for("agent-console", within=FIRST_FRAME_WITHIN)
    console.wait_for("✓ connected", "Needs attention", "▲ agent error")
    console.press("2")
    console.wait_for(*READY, "10")

    console.press("3")
    console.wait_for("30 all jobs", "◑ assigned")
    console.press("Enter")
    console.wait_for("payload, as given", "esc Back")
    console.press("Escape")
    console.wait_for("30 all jobs")
    console.press("?")
    console.wait_for("Esc closes", "Its audit trail")
    console.press("2")
    console.wait_for("Agents 10")
    assert console.is_alternate()

    leave(console)


def first_agent(console: Terminal) -> str:
    console.wait_for(*READY)
    console.press("Enter")
    console.wait_for("capabilities", "esc Back")
    found = re.search(r"agt_[0-9a-z]{26}", console.screen())
    assert found is not None
    console.press("Escape")
    console.wait_for("Agents 10")
    return found.group()


def test_a_second_start_finds_what_the_first_has_left(console: Terminal, machine: Path) -> None:
    start_demo(console)
    first = first_agent(console)
    leave(console)

    with terminal(machine) as again:
        start_demo(again)
        second = first_agent(again)

    assert second == first


def test_a_database_killed_under_it_is_brought_back(console: Terminal) -> None:
    start_demo(console)
    server = int((console.data / "demo/data/postmaster.pid").read_text().split()[0])

    os.kill(server, signal.SIGKILL)
    console.wait_for("✗ lost", "atlas")
    console.wait_for(*READY, within=HEALS_WITHIN)

    leave(console)


def test_pasted_text_is_no_key_and_no_size_breaks_it(console: Terminal) -> None:
    start_demo(console)

    console.paste("3f?q")
    console.press("Down")
    console.wait_for("▸  ● online   beacon")
    assert "Agents 10" in console.screen()

    for width, height in ((60, 20), (200, 60), (40, 10), (120, 40), (81, 23), (60, 20), (199, 59), (80, 24)) * 3:
        console.resize(width, height)
    console.press("3")
    console.wait_for("30 all jobs", "? Help")

    leave(console)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_gives_the_terminal_back(console: Terminal, number: signal.Signals) -> None:
    start_demo(console)

    console.signal(number)

    console.wait_for_end(128 + number)
    assert console.modes() == QUIET
    console.wait_for_nobody()

"""The demo as a person meets it: the real program, a real terminal, a real database."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.terminal import QUIET, Terminal, leave, terminal, wait_until
from tests.support.clusters import reachable_folder
from tests.support.long_first import JOURNEYS_OF_THE_DEMO

pytestmark = pytest.mark.xdist_group(JOURNEYS_OF_THE_DEMO)

# Bounds with room for a machine that stands still for seconds: the figures themselves are measured in bench/.
FIRST_FRAME_WITHIN = 15.0
HEALS_WITHIN = 60.0
FLEET_COMES_WITHIN = 60.0
ASKED_WITHIN = 90.0
READY = ("✓ connected", "atlas")


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
    console.wait_for(*READY, within=FLEET_COMES_WITHIN)


def test_a_first_look_around_and_a_decision_that_the_story_goes_on_from(console: Terminal) -> None:
    console.start("demo")
    console.wait_for("agent-console", within=FIRST_FRAME_WITHIN)
    console.wait_for("✓ connected", "Needs attention")
    console.press("2")
    console.wait_for(*READY, "lantern", within=FLEET_COMES_WITHIN)

    console.press("3")
    console.wait_for("all jobs", "● running")
    console.press("Enter")
    console.wait_for("payload, as given", "esc Back")
    console.press("Escape")
    console.wait_for("all jobs")
    console.press("?")
    console.wait_for("Esc closes", "Its audit trail")
    console.press("t")
    console.wait_for("1 of 6", "Needs attention", "▲ dead letter")
    console.press("Enter")
    console.wait_for("2 of 6", "From → to")
    console.press("Escape")
    console.wait_for("dispatch → gantry", "⏎ Open", within=ASKED_WITHIN)

    console.press("Enter")
    console.wait_for("Deploy build", "a approves once")
    console.press("a")
    console.wait_for("y approves, anything else doesn't")
    press_until(console, "✓ You approved it", "y")
    console.press("t")
    console.wait_for("● agent gantry", "is out and the nightly build is green", within=ASKED_WITHIN)
    assert console.is_alternate()

    console.press("0")
    console.wait_for("Needs attention")
    leave(console)


def press_until(console: Terminal, words: str, key: str) -> None:
    """Again, as people do when a key was too early to count."""

    def seen() -> bool:
        if words in console.screen():
            return True
        console.press(key)
        return False

    wait_until(seen, lambda: f"{words}\n{console.screen()}")


def first_agent(console: Terminal) -> str:
    console.wait_for(*READY)
    console.press("Enter")
    console.wait_for("capabilities", "esc Back")
    found = re.search(r"agt_[0-9a-z]{26}", console.screen())
    assert found is not None
    console.press("Escape")
    console.wait_for("Agents 12")
    return found.group()


def agents_process(console: Terminal) -> set[int]:
    """Its own, and nothing that it left behind."""
    return {pid for pid, command in console.processes().items() if command.endswith("-m agent_console.demo")}


def test_a_second_start_goes_on_with_the_first_and_brings_killed_agents_back(
    console: Terminal, machine: Path
) -> None:
    start_demo(console)
    first = first_agent(console)
    leave(console)

    with terminal(machine) as again:
        start_demo(again)
        second = first_agent(again)
        (killed,) = agents_process(again)
        os.kill(killed, signal.SIGKILL)
        wait_until(
            lambda: bool(agents_process(again) - {killed}),
            lambda: f"nobody came for {killed}",
            within=HEALS_WITHIN,
        )
        # However it ends, it takes everybody with it.
        again.signal(signal.SIGKILL)
        again.wait_for_nobody()

    assert second == first


def test_a_database_killed_under_it_is_brought_back(console: Terminal) -> None:
    start_demo(console)
    server = int((console.data / "demo/data/postmaster.pid").read_text().split()[0])

    os.kill(server, signal.SIGKILL)
    console.wait_for("✗ lost", "atlas")
    console.wait_for(*READY, within=HEALS_WITHIN)

    leave(console)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_gives_the_terminal_back(console: Terminal, number: signal.Signals) -> None:
    start_demo(console)

    console.signal(number)

    console.wait_for_end(128 + number)
    assert console.modes() == QUIET
    console.wait_for_nobody()

"""Agents that write to harm the reader: everything they say is shown, and nothing of it acts."""

import pytest

from tests.attacks.hostile_strings import HOSTILE
from tests.snapshots.conftest import ROOMY, USUAL, LooksRightInTurn, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly

BOTH = pytest.mark.sizes(USUAL, ROOMY)
NAMES = (
    "osc 0 title, BEL",
    "csi clear screen",
    "carriage return over the line",
    "10,000 combining marks",
    "click action",
    "bidi override",
    "tag characters",
    "fake system box",
    "full-width name",
    "padding with no-break spaces",
)
ERRORS = ("osc 52 clipboard, ST", "closing tag")


@pytest.fixture
def hostile_fleet(fleet: Fleet) -> Fleet:
    agents = fleet.execute("select id from agents order by id")
    for (agent_id,), name in zip(agents, NAMES, strict=True):
        fleet.execute("update agents set name = %s where id = %s", HOSTILE[name][:200], agent_id)
    fleet.execute(
        "update agent_runtime set error_message = %s where presence = 'error'", HOSTILE["400 blank lines"]
    )
    troubled = fleet.execute("select id from jobs where status in ('failed', 'dead_letter') order by id desc")
    for (job_id,), error in zip(troubled, ERRORS, strict=True):
        fleet.execute("update jobs set error_message = %s where id = %s", HOSTILE[error], job_id)
    return fleet


@BOTH
def test_hostile_words(looks_right_in_turn: LooksRightInTurn, hostile_fleet: Fleet, size: Sizes) -> None:
    assert looks_right_in_turn(
        console(directly(hostile_fleet.working)),
        size,
        {
            "agents": (),
            "one-agent": ("down", "down", "enter"),
            "jobs": ("escape", "3"),
            "one-job": ("f", "f", "f", "enter"),
        },
    )

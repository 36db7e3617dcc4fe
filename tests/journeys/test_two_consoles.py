"""Two operators, two kinds of terminal, one request: one of them decides it, the other one is told who."""

import re

import psycopg
import pytest

from tests.journeys.still_fleet import (
    ANA,
    OLE,
    VERA,
    ask_to_approve,
    begun_by,
    console_of,
    open_first_request,
)
from tests.journeys.terminal import leave, wait_until
from tests.support.fleet import Fleet
from tests.support.long_first import JOURNEYS

pytestmark = pytest.mark.xdist_group(JOURNEYS)

WAITING_FOR_THE_ROW = """
    select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""
DECIDED = """
    select users.full_name from approvals
      join users on users.id = approvals.decided_by_user_id
      join runs on runs.id = approvals.run_id
     where approvals.envelope ->> 'input' like '%%second source%%'
"""
MORE_THAN_SIXTEEN_COLOURS = re.compile(rb"\x1b\[[0-9;]*[34]8;[25];")


@pytest.mark.rule("R002-76")
def test_of_two_that_approve_at_once_one_is_told_that_the_other_did(story: Fleet) -> None:
    begun_by(story, VERA)
    xterm, linux = {"TERM": "xterm"}, {"TERM": "linux"}
    with console_of(story, ANA, xterm) as ana, console_of(story, OLE, linux) as ole:
        for console in (ana, ole):
            open_first_request(console)
            ask_to_approve(console)
        with psycopg.connect(story.administration) as somebody:
            somebody.execute("select id from approvals where state = 'pending' for update")
            ana.press("y")
            ole.press("y")
            wait_until(lambda: story.one(WAITING_FOR_THE_ROW) == 2, lambda: f"{ana.screen()}\n{ole.screen()}")
            somebody.rollback()
        wait_until(lambda: "✓ You approved it" in ana.screen() + ole.screen(), ana.screen)

        ana_won = "✓ You approved it" in ana.screen()
        loser, winner = (ole, "Ana Costa") if ana_won else (ana, "Ole Berg")
        loser.wait_for(f"✓ {winner} approved it")

        assert story.execute(DECIDED) == [(winner,)]
        assert story.one("select count(*) from audit_log where action = 'approval.approve'") == 1
        for console in (ana, ole):
            assert not MORE_THAN_SIXTEEN_COLOURS.search(console.written())
            console.press("Escape")
            console.wait_for("1 waiting for a person")
            leave(console)

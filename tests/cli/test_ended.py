"""A command that is ended from outside: it leaves in order, and says by whom it was ended."""

import signal
from pathlib import Path

import pytest

from tests.cli.program import environment, started
from tests.server.stage import until
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)
# One that is cut off while it connects has nothing to put away, and Python says so to whoever tests.
AT_REST = """
    select count(*) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and state = 'idle'
       and clock_timestamp() - state_change > interval '0.2 seconds'
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
async def test_it_leaves_in_order_with_the_code_of_its_signal(
    fleet: Fleet, tmp_path: Path, number: signal.Signals
) -> None:
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working, AGENT_CONSOLE_USER="ana@example.com")

    with started("audit", "tail", "--follow", variables=variables) as following:
        await until(lambda: fleet.one(AT_REST) != 0)
        following.send_signal(number)
        out, told = following.communicate()

    assert (following.wait(), out, told) == (128 + number, "", "")

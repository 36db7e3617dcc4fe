"""The server's own words: in the same form as its access log, so that one reader understands both."""

import json
import logging
import signal
from pathlib import Path

import httpx
import pytest

from agent_console.server.bad_credentials import WARN_AT
from agent_console.server.event_log import events_told
from tests.cli.program import environment, started
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS


@pytest.mark.xdist_group(PROGRAMS)
def test_a_warning_of_a_server_is_a_line_that_a_machine_reads(fleet: Fleet, tmp_path: Path) -> None:
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    with started("serve", "--port", "0", "--no-access-log", variables=variables) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        for _ in range(WARN_AT):
            httpx.get(f"{url}/v1/me", headers={"Authorization": "Bearer opt_key_bad"})
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate()

    heard, *lines = told.splitlines()
    assert heard.startswith("Listening on")
    assert [(line["level"], line["message"]) for line in map(json.loads, lines)] == [
        ("warning", "5 bad credentials within 300 s from 127.0.0.1")
    ]


def test_a_fault_is_told_whole_in_one_line() -> None:
    lines: list[str] = []

    with events_told(lines.append):
        try:
            int("seven")
        except ValueError:
            logging.getLogger("agent_console.server").exception("request %s failed", "5f2a")
        logging.getLogger("elsewhere").info("nobody needs that")
    logging.getLogger("elsewhere").warning("this is another's")

    [line] = lines
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("error", "request 5f2a failed")
    assert told["traceback"].endswith("ValueError: invalid literal for int() with base 10: 'seven'")
    assert told["time"].endswith("Z")

"""`agent-console doctor` as a person and as a script use it."""

import json
from pathlib import Path

import pytest

from agent_console.domain.duties import DUTY_RULES
from tests.cli.program import agent_console
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS
from tests.tui_terminal.real_terminal import RealTerminal

pytestmark = pytest.mark.xdist_group(PROGRAMS)

NOBODY = "postgresql://bob:hunter2@127.0.0.1:1/nowhere"


def all_duties_done(fleet: Fleet) -> None:
    for rule in DUTY_RULES:
        fleet.execute(
            "insert into duty_rounds (duty, done_at, done_by, seconds) values (%s, now() + interval '1 day',"
            " 'elsewhere:7', 0.1)",
            rule.name,
        )


def test_where_nothing_is_wrong_it_says_so_and_ends_with_0(tmp_path: Path, fleet: Fleet) -> None:
    all_duties_done(fleet)

    told = agent_console("doctor", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working, AGENT_CONSOLE_TEAM="example")

    assert told.code == 0, told.out
    lines = [line.split() for line in told.out.splitlines()]
    assert ["✓", "schema", "0005,", "current"] in lines
    assert ["✓", "duties", "all", str(len(DUTY_RULES)), "in", "time"] in lines
    assert any(line[:2] == ["✓", "latency"] for line in lines)
    assert " wrong" not in told.err


def test_where_nobody_answers_it_says_what_it_tried_and_ends_with_1(tmp_path: Path) -> None:
    told = agent_console("doctor", "-o", "json", home=tmp_path, AGENT_CONSOLE_DSN=NOBODY)

    found = {finding["what"]: finding for finding in json.loads(told.out)}
    assert (told.code, found["connection"]["verdict"]) == (1, "wrong")
    assert "nowhere at 127.0.0.1:1" in found["connection"]["value"]
    assert found["connection"]["advice"]
    assert "1 wrong" in told.err
    assert "hunter2" not in told.out + told.err


def test_a_data_folder_that_cannot_be_looked_at_is_no_end(tmp_path: Path) -> None:
    far = tmp_path / ("f" * 300)

    told = agent_console("doctor", "-o", "json", home=tmp_path, AGENT_CONSOLE_DATA=str(far))

    assert (told.code, json.loads(told.out)[0]["what"]) == (1, "terminal"), told.err
    assert "Traceback" not in told.err


def test_a_configuration_that_cannot_be_read_is_a_finding_and_no_end(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = "dark"\nthem = "light"\n')

    told = agent_console("doctor", home=tmp_path, AGENT_CONSOLE_CONFIG=str(file))

    assert told.code == 1
    assert "✗ file" in told.out
    assert "them" in told.out
    assert "✓ Python" in told.out


def test_a_configuration_that_others_can_read_and_a_key_for_two_things_are_told(
    tmp_path: Path, fleet: Fleet
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[keymap]\n"list.act" = "x"\n"list.new" = "x"\n')
    file.chmod(0o644)

    told = agent_console(
        *("doctor", "-o", "json"), home=tmp_path, AGENT_CONSOLE_CONFIG=str(file), AGENT_CONSOLE_DSN=fleet.working
    )

    found = {finding["what"]: finding for finding in json.loads(told.out)}
    assert found["file"]["advice"] == f"Others can read it: chmod 600 {file}"
    assert "list.act" in found["keymap"]["value"]


def test_in_a_real_terminal_it_tells_what_that_can_do(tmp_path: Path) -> None:
    terminal = RealTerminal(
        ["-m", "agent_console", "doctor"],
        (72, 24),
        HOME=str(tmp_path),
        LC_ALL="C.UTF-8",
        COLUMNS="80",
        COLORTERM="",
        TMUX="socket",
        SSH_CONNECTION="192.0.2.7 1 192.0.2.8 22",
        AGENT_CONSOLE_DSN=NOBODY,
    )
    try:
        code = terminal.end()
    finally:
        terminal.close()

    lines = [line.split() for line in terminal.received.splitlines()]
    assert code == 1
    assert ["✓", "TERM", "xterm-256color"] in lines
    assert ["✓", "colours", "256"] in lines
    assert ["!", "size", "72x24"] in lines
    assert ["✓", "letters", "UTF-8"] in lines
    assert ["✓", "inside", "tmux"] in lines
    assert "ssh -C" in terminal.received

"""The audit trail on the command line: proved, followed, and taken away."""

import json
import signal
import stat
from pathlib import Path

import pytest

from tests.cli.program import agent_console, environment, started
from tests.support.fleet import Fleet
from tests.support.trail import act, seal
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)


def test_a_trail_is_proved_against_an_exported_seal_and_damage_is_exit_code_one(
    tmp_path: Path, fleet: Fleet
) -> None:
    acts = [act(fleet) for _ in range(3)]
    seal(fleet)
    exported = agent_console("audit", "seal", "-o", "json", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    kept = tmp_path / "seal.json"
    kept.write_text(exported.out)
    words = ("audit", "verify", "--seal", f"@{kept}", "--batch-size", "2")

    holds = agent_console(*words, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    fleet.execute("set session_replication_role = replica")
    fleet.execute("update audit_log set actor_label = 'Ole' where id = %s", acts[1])
    damaged = agent_console(*words, "-o", "json", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert holds.code == 0, holds.err
    assert "The trail holds: 3 acts" in holds.err
    assert damaged.code == 1
    assert "DAMAGED (changed)" in damaged.err
    found = json.loads(damaged.out)["damage"]
    assert (found["kind"], found["position"], found["audit_id"]) == ("changed", 2, str(acts[1]))


def test_an_export_goes_to_a_new_file_of_ones_own_or_to_stdout(tmp_path: Path, fleet: Fleet) -> None:
    acts = [act(fleet, reason="=1+1") for _ in range(3)]
    seal(fleet)
    file = tmp_path / "trail.csv"

    def export(*words: str) -> tuple[int, str, str]:
        ended = agent_console(
            "audit", "export", "--limit", "2", *words, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working
        )
        return ended.code, ended.out, ended.err

    code, lines, told = export()
    to_file = export("--format", "csv", "--file", str(file))
    once_more = export("--file", str(file))

    assert (code, [json.loads(line)["id"] for line in lines.splitlines()]) == (0, [str(row) for row in acts]), told
    assert (to_file[0], to_file[1]) == (0, ""), to_file[2]
    assert file.read_text().count("'=1+1") == 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (once_more[0], "not there yet" in once_more[2]) == (2, True)


def test_a_tail_is_followed_until_somebody_stops_it(tmp_path: Path, fleet: Fleet) -> None:
    before = act(fleet)
    seal(fleet)
    tail = ("audit", "tail", "--follow", "-o", "ids")
    with started(*tail, variables=environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)) as following:
        assert following.stdout is not None
        first = following.stdout.readline()
        after = act(fleet)
        seal(fleet)
        second = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        rest = following.stdout.read()
        code = following.wait()

    assert (first.strip(), second.strip(), rest, code) == (str(before), str(after), "", 130)


def test_the_state_of_the_seals_and_what_would_be_dropped_are_shown(tmp_path: Path, fleet: Fleet) -> None:
    act(fleet)
    seal(fleet)

    status = agent_console("audit", "seal-status", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    due = agent_console("audit", "prune", "--dry-run", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    listed = agent_console("audit", "list", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (status.code, due.code, listed.code) == (0, 0, 0), due.err
    assert "lag_seconds" in status.out.replace(" ", "_")
    assert "job.create" in listed.out
    assert fleet.one("select count(*) from audit_log") == 1

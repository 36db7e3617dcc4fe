"""A terminal that knows no Unicode gets escapes from every command, and never a traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import SECONDS, environment
from tests.support.fleet import Fleet
from tests.support.trail import act, seal


def program(home: Path, fleet: Fleet, *words: str) -> "subprocess.Popen[str]":
    """An interpreter of its own: how it speaks is decided when it begins."""
    return subprocess.Popen(
        [sys.executable, "-m", "agent_console", *words],
        env=environment(home, AGENT_CONSOLE_DSN=fleet.working, PYTHONIOENCODING="latin-1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="latin-1",
    )


def test_the_status(tmp_path: Path, fleet: Fleet) -> None:
    fleet.execute("update users set full_name = 'Ana 漢' where email = 'ana@example.com'")

    with program(tmp_path, fleet, "status") as status:
        out, err = status.communicate(timeout=SECONDS)

    assert status.returncode == 0, err
    assert "as Ana \\u6f22 (admin)" in out


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_tail_that_is_followed(tmp_path: Path, fleet: Fleet, form: str) -> None:
    act(fleet, resource="job_漢")
    seal(fleet)

    with program(tmp_path, fleet, "audit", "tail", "--follow", "-o", form) as following:
        assert following.stdout is not None
        line = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, err = following.communicate(timeout=SECONDS)

    assert following.returncode == 130, err
    assert "job_\\u6f22" in line


def test_an_export(tmp_path: Path, fleet: Fleet) -> None:
    act(fleet, resource="job_漢")
    seal(fleet)

    with program(tmp_path, fleet, "audit", "export", "--format", "csv") as export:
        out, err = export.communicate(timeout=SECONDS)

    assert export.returncode == 0, err
    assert "job_\\u6f22" in out

"""The examples for systemd and containers: understood by whoever runs them, and by the program that they start."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from agent_console.config import load
from tests.docs.blocks import REPOSITORY
from tests.docs.command_line import accepted

PACKAGING = REPOSITORY / "packaging"
UNITS = sorted(PACKAGING.glob("*.service"))
INSTALLED = "/opt/agent-console/bin/agent-console"
NAMED = re.compile(r"^#   ([A-Z_]+)=(.*)$", re.MULTILINE)


class UnitFile(ConfigParser):
    """As systemd reads it: case matters, and a percent sign is its own."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def read(unit: Path) -> UnitFile:
    parser = UnitFile(interpolation=None, strict=False)
    parser.read(unit, encoding="utf-8")
    return parser


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_the_unit(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    assert INSTALLED in text
    copy = tmp_path / unit.name
    copy.write_text(text.replace(INSTALLED, sys.executable), encoding="utf-8")

    analyze = shutil.which("systemd-analyze")
    said = ""
    if analyze is not None:
        done = subprocess.run([analyze, "verify", copy], capture_output=True, text=True, check=False, timeout=60)
        said = "".join(line for line in done.stderr.splitlines(keepends=True) if unit.name in line)

    assert said == ""
    assert {"Unit", "Service", "Install"} == set(read(unit).sections())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_unit_starts_is_a_command(unit: Path) -> None:
    started, *words = shlex.split(read(unit)["Service"]["ExecStart"])

    assert started == INSTALLED
    assert accepted(words)


def test_the_variables_that_a_unit_names_lead_somewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = dict(NAMED.findall((PACKAGING / "agent-console.service").read_text(encoding="utf-8")))
    key = named.pop("AGENT_CONSOLE_SERVER_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("AGENT_CONSOLE_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in named.items():
        assert name.startswith("AGENT_CONSOLE_"), f"libpq reads {name} as the user of the service, not as root"
        monkeypatch.setenv(name, value)

    settings = load()
    connection = settings.profile.connection()

    assert key == "…"
    assert connection is not None
    assert conninfo_to_dict(connection.dsn.get_secret_value())["password"] == "…"
    # Whoever listens on this machine alone stands behind a proxy, and all that come through it would be one.
    assert settings.trusted_proxies == ("127.0.0.1/32",)


def test_a_container_is_built_in_the_form_that_keeps_its_healthcheck_and_published_on_this_machine_alone() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    published = re.findall(r"--publish (\S+)", text)

    assert "\nHEALTHCHECK " in text
    assert all("--format docker" in line for line in text.splitlines() if "podman build" in line)
    assert published
    assert all(one.startswith("127.0.0.1:") for one in published)


def test_what_the_container_starts_is_a_command_and_everything_it_copies_is_there() -> None:
    text = re.sub(r"\\\n\s*", "", (PACKAGING / "Containerfile").read_text(encoding="utf-8"))
    instructions = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    [started] = [json.loads(words) for name, words in instructions if name == "CMD"]
    copied = [words.split()[:-1] for name, words in instructions if name == "COPY" and "--from" not in words]

    assert started[0] == "agent-console"
    assert accepted(started[1:])
    assert all((REPOSITORY / path).exists() for paths in copied for path in paths)
    assert ["USER", "65532:65532"] in instructions

"""The examples for systemd and containers: understood by whoever runs them, and by the program that they start."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.command_line import accepted

PACKAGING = REPOSITORY / "packaging"
UNITS = sorted(PACKAGING.glob("*.service"))
INSTALLED = "/opt/agent-console/bin/agent-console"


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


def test_what_the_container_starts_is_a_command_and_everything_it_copies_is_there() -> None:
    text = re.sub(r"\\\n\s*", "", (PACKAGING / "Containerfile").read_text(encoding="utf-8"))
    instructions = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    [started] = [json.loads(words) for name, words in instructions if name == "CMD"]
    copied = [words.split()[:-1] for name, words in instructions if name == "COPY" and "--from" not in words]

    assert started[0] == "agent-console"
    assert accepted(started[1:])
    assert all((REPOSITORY / path).exists() for paths in copied for path in paths)
    assert ["USER", "65532:65532"] in instructions

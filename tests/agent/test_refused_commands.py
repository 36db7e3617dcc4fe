"""Command lines that can't work are refused with a sentence, before a token is used or a job taken."""

import stat
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agent_console.cli.agent_commands import add_agent
from agent_console.config import load

URL = ("--url", "http://127.0.0.1:9")
TOKEN = ("--token", "art_key_x", "--name", "newcomer")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The commands, in this process, in a home of their own."""
    for name in ("XDG_CONFIG_HOME", "AGENT_CONSOLE_URL", "AGENT_CONSOLE_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    program = typer.Typer(rich_markup_mode=None)
    add_agent(program, load)
    return program


def refusal(program: typer.Typer, *words: str) -> str:
    done = CliRunner().invoke(program, ["agent", *words])
    assert done.exit_code == 2, done.output
    return done.stderr


def key(tmp_path: Path, mode: int = 0o600) -> str:
    file = tmp_path / "there.key"
    file.write_text("agt_key_x")
    file.chmod(mode)
    return str(file)


def test_a_key_file_that_is_there_is_refused_before_the_token_is_used(
    program: typer.Typer, tmp_path: Path
) -> None:
    said = refusal(program, "register", *URL, *TOKEN, "--key-file", key(tmp_path))

    assert f"There is a key in {tmp_path / 'there.key'} already." in said
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there.key"]


def test_a_program_that_is_not_there_is_refused(program: typer.Typer, tmp_path: Path) -> None:
    said = refusal(program, "run", *URL, "--key-file", key(tmp_path), "--", "no-such-program")

    assert "There is no program no-such-program that could be started." in said


def test_who_has_no_key_is_told_to_register(program: typer.Typer) -> None:
    said = refusal(program, "run", *URL, "--", "true")

    assert "Register first: agent-console agent register" in said


def test_a_key_that_others_can_read_is_refused(program: typer.Typer, tmp_path: Path) -> None:
    said = refusal(program, "run", *URL, "--key-file", key(tmp_path, 0o640), "--", "true")

    assert "others can read or change" in said
    assert stat.S_IMODE((tmp_path / "there.key").stat().st_mode) == 0o640


def test_a_key_that_can_not_be_looked_at_is_refused_with_the_reason(program: typer.Typer, tmp_path: Path) -> None:
    said = refusal(program, "run", *URL, "--key-file", str(tmp_path / ("k" * 300)), "--", "true")

    assert "The agent's key can't be read from" in said
    assert "File name too long" in said


def test_an_agent_without_a_server_is_told_to_name_one(program: typer.Typer) -> None:
    said = refusal(program, "run", "--", "true")

    assert "An agent needs a server." in said

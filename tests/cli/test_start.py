"""What starting costs: nothing heavy is imported that the command does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import environment

HEAVY = ("textual", "fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "httpx")

IMPORTED = """
import sys
sys.argv = ["agent-console", *{arguments!r}]
from agent_console.__main__ import main
try:
    main()
except SystemExit:
    pass
print("IMPORTED", *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def imported(home: Path, *arguments: str, **variables: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(arguments=list(arguments))],
        env=environment(home, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("IMPORTED"))
    return set(line.split()[1:])


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--version"], set[str]()),
        (["--help"], set[str]()),
        (["jobs", "list", "--help"], set[str]()),
        (["config", "show"], set[str]()),
        (["jobs", "list", "--limit", "0"], set[str]()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_that_need_nothing_import_nothing_heavy(
    tmp_path: Path, arguments: list[str], allowed: set[str]
) -> None:
    assert imported(tmp_path, *arguments) & set(HEAVY) == allowed


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    assert not imported(tmp_path, "--version") & {"typer", "pydantic", "click", "rich", "asyncio"}


def test_a_remote_profile_never_imports_the_database(tmp_path: Path) -> None:
    found = imported(tmp_path, "status", AGENT_CONSOLE_URL="http://127.0.0.1:1", AGENT_CONSOLE_TOKEN="opt_key_x")

    assert "httpx" in found
    assert not found & {"sqlalchemy", "psycopg", "alembic", "fastapi", "textual"}


def test_a_direct_profile_never_imports_the_server(tmp_path: Path) -> None:
    found = imported(tmp_path, "status", AGENT_CONSOLE_DSN="postgresql://127.0.0.1:1/x")

    assert "sqlalchemy" in found
    assert not found & {"fastapi", "uvicorn", "httpx", "textual", "alembic"}


def test_the_skeleton_comes_before_everything_else(tmp_path: Path) -> None:
    """Bare, on what is no terminal, nothing is written; but what decides that must be light."""
    code = "import sys; from agent_console.tui.terminal import skeleton; print(*sorted(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )

    assert not {name.partition(".")[0] for name in done.stdout.split()} & {*HEAVY, "typing", "re", "typer"}


def test_which_arguments_open_a_console() -> None:
    from agent_console.__main__ import console_asked_for

    for line, command, options in (
        ("", "", {}),
        ("demo", "demo", {}),
        ("console", "console", {}),
        ("--profile prod", "", {"profile": "prod"}),
        ("-p prod --slow", "", {"profile": "prod", "slow": True}),
        ("--theme=light demo --read-only", "demo", {"theme": "light", "read_only": True}),
    ):
        assert console_asked_for(line.split()) == (command, options), line
    for line in ("--help", "demo --help", "status", "-p prod status", "jobs list", "--team", "serve --port 0"):
        assert console_asked_for(line.split()) is None, line

"""What starting costs: nothing heavy is imported that the command does not need."""

import subprocess
import sys
from pathlib import Path

import typer

from agent_console.cli.derived import add_nouns
from agent_console.cli.main import load
from tests.cli.program import environment

HEAVY = ("textual", "fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "httpx")

# What a command imports stays, so a later one may show what an earlier one had, but never less than its own.
IMPORTED = """
import sys
from agent_console.__main__ import main
for line in {lines!r}:
    sys.argv = ["agent-console", *line.split()]
    try:
        main()
    except SystemExit:
        pass
    print("\\nIMPORTED", *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def imported(home: Path, *lines: str, **variables: str) -> dict[str, set[str]]:
    """What was imported after each of these command lines, one after the other in one process."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(lines=lines)],
        env=environment(home, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = [set(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("IMPORTED")]
    return dict(zip(lines, told, strict=True))


def test_commands_that_need_nothing_import_nothing_heavy(tmp_path: Path) -> None:
    found = imported(tmp_path, "--version", "--help", "jobs list --help", "config show", "jobs list --limit 0")

    assert {line: modules & set(HEAVY) for line, modules in found.items() if modules & set(HEAVY)} == {}
    assert not found["--version"] & {"typer", "pydantic", "click", "rich", "asyncio"}


def test_a_remote_profile_never_imports_the_database(tmp_path: Path) -> None:
    remote = {"AGENT_CONSOLE_URL": "http://127.0.0.1:1", "AGENT_CONSOLE_TOKEN": "opt_key_x"}

    found = imported(tmp_path, "status", **remote)["status"]

    assert "httpx" in found
    assert not found & {"sqlalchemy", "psycopg", "alembic", "fastapi", "textual"}


def test_a_direct_profile_never_imports_the_server(tmp_path: Path) -> None:
    found = imported(tmp_path, "status", AGENT_CONSOLE_DSN="postgresql://127.0.0.1:1/x")["status"]

    assert "sqlalchemy" in found
    assert not found & {"fastapi", "uvicorn", "httpx", "textual", "alembic"}


def modules_after(home: Path, code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('MODULES', *sys.modules)"],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_a_command_of_our_own_reads_no_operations(tmp_path: Path) -> None:
    run = "from agent_console.cli.main import run"

    found = modules_after(tmp_path, f"{run}; run(['config', 'show']); run(['db', '--help'])")

    assert "agent_console.cli.main" in found
    assert not found & {"agent_console.repository.operations", "agent_console.cli.derived"}


def test_the_console_of_the_demo_leaves_the_database_to_its_server(tmp_path: Path) -> None:
    found = modules_after(tmp_path, "import agent_console.cli.demo.opening, agent_console.cli.demo.server_process")

    assert "agent_console.cli.demo.agents_process" in found
    assert not found & {"sqlalchemy", "psycopg", "alembic", "fastapi", "agent_console.database.embedded"}


def test_only_the_nouns_that_are_named_are_made_and_for_help_no_verbs() -> None:
    def made(*words: str) -> dict[str | None, int]:
        app = typer.Typer()
        add_nouns(app, load, *words)
        groups = {str(group.name): group.typer_instance for group in app.registered_groups}
        return {name: len(group.registered_commands) for name, group in groups.items() if group is not None}

    every, named, help_of_all = made("nonsense"), made("--team", "jobs", "worker-tokens", "list"), made("--help")

    assert set(named) == {"jobs", "worker-tokens"}
    assert named == {name: every[name] for name in named}
    assert len(every) > len(named) > 0
    assert min(every.values()) > 0
    assert help_of_all == dict.fromkeys(every, 0)


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

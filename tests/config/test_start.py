"""The command line starts fast: what is not needed yet is not imported yet."""

import os
import subprocess
import sys

import pytest

HEAVY = ("pydantic", "pydantic_settings", "platformdirs", "tomllib", "keyring", "psycopg", "textual")


def imported_by(program: str, **environment: str) -> set[str]:
    """Which heavy modules a fresh interpreter has imported after the program."""
    report = f"import sys; {program}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_CONSOLE_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", report],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    imported = imported_by("import agent_console.config")

    assert imported == set()


@pytest.mark.parametrize(
    ("environment", "asked"), [({}, set()), ({"AGENT_CONSOLE_SLOW": "1"}, {"pydantic_settings"})]
)
def test_loading_imports_pydantic_settings_only_when_a_variable_is_set(
    environment: dict[str, str], asked: set[str]
) -> None:
    imported = imported_by("from agent_console.config import load; load()", **environment)

    assert imported == {"pydantic", "platformdirs", "tomllib"} | asked

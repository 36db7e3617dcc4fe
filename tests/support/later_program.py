"""A later version of the program, laid out as its wheel is, with migrations that this one does not know."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from agent_console.database.schema import REVISION

REPOSITORY = Path(__file__).parents[2]
MIGRATION = """
from agent_console.database.migrate import run_sql

revision = "{revision}"
down_revision = "{before}"
serves_since = "{serves_since}"


def upgrade() -> None:
    run_sql("{revision}_later.up.sql")
"""
# In one process: starting is most of what it costs.
TYPED = """
import sys
from agent_console.cli.main import app

for command in sys.argv[1:]:
    try:
        app(command.split())
    except SystemExit as ended:
        if ended.code:
            raise
"""


@dataclass(frozen=True)
class LaterProgram:
    folder: Path
    revision: str

    def with_migration(self, sql: str, *, serves_since: str | None = None) -> "LaterProgram":
        """The version after it; without `serves_since` its schema serves this version too, and nobody older."""
        later = f"{int(self.revision) + 1:04}"
        package = self.folder / "agent_console"
        module = MIGRATION.format(revision=later, before=self.revision, serves_since=serves_since or self.revision)
        (package / "migrations" / "versions" / f"{later}_later.py").write_text(module)
        (package / "migrations" / "sql" / f"{later}_later.up.sql").write_text(sql)
        schema = package / "database" / "schema.py"
        changed = schema.read_text().replace(f'REVISION = "{self.revision}"', f'REVISION = "{later}"')
        # Of another length, or what was compiled from it a moment ago would still be taken.
        schema.write_text(f"{changed}\n")
        return LaterProgram(self.folder, later)

    def says(self, dsn: str, *commands: str) -> str:
        """What it tells when these are typed one after another about this database; all must succeed."""
        compiled_once = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        here = {"PYTHONPATH": str(self.folder), "HOME": str(self.folder), "AGENT_CONSOLE_DSN": dsn}
        ended = subprocess.run(
            [sys.executable, "-c", TYPED, *commands],
            cwd=self.folder,
            env=compiled_once | here,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        return ended.stdout


def this_program_again(folder: Path) -> LaterProgram:
    """A copy of this version, to grow from."""
    pyproject = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    uncompiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "src" / "agent_console", folder / "agent_console", ignore=uncompiled)
    for place, inside in pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        shutil.copytree(REPOSITORY / place, folder / inside, ignore=uncompiled)
    return LaterProgram(folder, REVISION)

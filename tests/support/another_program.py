"""A second program that uses the embedded PostgreSQL: says each step, leaves when its input closes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_console.database.embedded import embedded_postgres

READY = "ready"
REPOSITORY = Path(__file__).parents[2]


@contextmanager
def another_program(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs in a session of its own, as in another terminal, and is killed if the test did not end it."""
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    with subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder)],
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def wait_until_ready(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    assert any(line.strip() == READY for line in program.stdout), "the program ended before it was ready"


def leave(program: subprocess.Popen[str]) -> str:
    """Let the program leave in order, and tell what it wrote to its error output."""
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 0, errors
    return errors


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    with embedded_postgres(Path(sys.argv[1]), say=_say):
        _say(READY)
        sys.stdin.read()

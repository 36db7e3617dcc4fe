"""The real program in a process of its own; the imports that every start has in common are done before."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.warm_start import WarmProgram, warm_python

SECONDS = 60


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Nothing of the machine's own settings; everything below `home`."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "PYTHONWARNINGS": "default"} | variables


def started(*arguments: str, variables: Mapping[str, str], stderr: int | None = None) -> WarmProgram:
    """`python -m agent_console` in this environment, still running."""
    return warm_python().start("agent_console", *arguments, environment=variables, stderr=stderr)


def agent_console(*arguments: str, home: Path, stdin: str = "", **variables: str) -> Ended:
    with started(*arguments, variables=environment(home, **variables)) as program:
        out, err = program.communicate(stdin, timeout=SECONDS)
    return Ended(program.wait(), out, err)

"""The real program in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def agent_console(*arguments: str, home: Path, stdin: str = "", **variables: str) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "agent_console", *arguments],
        env=environment(home, **variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)

"""What `make` does where something is missing."""

import subprocess
from pathlib import Path

from tests.docs.blocks import REPOSITORY

# As Debian's Python without python3-venv: it leaves a folder with a python in it, and fails.
WITHOUT_VENV = """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p "$3/bin" && touch "$3/bin/python"
exit 1
"""


def test_a_virtual_environment_that_failed_is_not_taken_for_one_the_next_time(tmp_path: Path) -> None:
    python, venv = tmp_path / "python", tmp_path / "venv"
    python.write_text(WITHOUT_VENV)
    python.chmod(0o755)

    for _ in range(2):
        made = subprocess.run(
            ["make", f"PYTHON={python}", f"VENV={venv}", f"{venv}/bin/python"],
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
        )  # fmt: skip

        assert (made.returncode, venv.exists()) == (2, False), made.stdout + made.stderr
        assert "apt-get install python3-venv" in made.stderr

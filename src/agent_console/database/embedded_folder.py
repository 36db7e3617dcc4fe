"""The data folder of the embedded PostgreSQL: what lies where, who may enter, and what goes wrong with it."""

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agent_console.database.embedded_account import ACCOUNT_NAME, Account, closed_folder
from agent_console.domain.errors import DatabaseUnavailable

PORT = 5432
SUPERUSER = "postgres"
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_BYTES = 103  # The smallest limit among the systems we run on: 107 on Linux, 103 on macOS.
LOG_DAYS = 6
LOG_BYTES = 16 * 1024 * 1024
LOG_TAIL_BYTES = 4096
NO_SPACE = {errno.ENOSPC: "No space left on device", errno.EDQUOT: "Disk quota exceeded"}


@dataclass(frozen=True)
class Layout:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def start_log(self) -> Path:
        """What the server says before it has opened its own log."""
        return self.folder / "start.log"

    @property
    def change_lock(self) -> Path:
        """Held alone while somebody starts or stops the server."""
        return self.folder / "change.lock"

    @property
    def users_lock(self) -> Path:
        """Shared by every program that uses the server."""
        return self.folder / "users.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the processes of PostgreSQL themselves, for as long as one of them lives."""
        return self.folder / "server.lock"

    def dsn(self, database: str) -> str:
        return socket_dsn(self.run, database)

    def log_tail(self) -> str:
        logs = sorted(self.log.iterdir(), key=lambda log: log.lstat().st_mtime)
        return "\n".join(_tail(log) for log in (self.start_log, *logs[-1:])).strip()

    def forget_old_logs(self) -> None:
        """PostgreSQL itself empties a log of last week only when midnight passes while it runs."""
        for log in self.log.iterdir():
            stat = log.lstat()
            if stat.st_size > LOG_BYTES or time.time() - stat.st_mtime > LOG_DAYS * 86400:
                log.unlink()


def socket_dsn(folder: Path, database: str) -> str:
    host = quote(str(folder), safe="")
    return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port={PORT}"


def open_folder(folder: Path, account: Account | None) -> Layout:
    """Make the folder if it is missing. What exists keeps its owner and its mode, or is refused."""
    layout = Layout(folder.absolute())
    _refuse_long_path(layout)
    _make_way(layout.folder, account)
    closed = closed_folder(layout.folder, account) if account else None
    if closed:
        raise DatabaseUnavailable(
            f"As root the database runs as the user {ACCOUNT_NAME}, which may not enter {closed}.",
            hint="Choose a data folder that is not below a private one, such as /var/lib/agent-console.",
        )
    return layout


def make_private(folder: Path, account: Account | None) -> None:
    """A folder for the server alone. One left half made by a killed program gets its owner now."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if account and folder.lstat().st_uid != account.uid:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)


def sync_folder(folder: Path) -> None:
    """A rename is on the disk only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def failure(what: str, output: str, folder: Path) -> DatabaseUnavailable:
    """The error for a PostgreSQL program that failed with this output."""
    if any(reason in output for reason in NO_SPACE.values()):
        return _no_space(folder, output)
    hint = f"The details and the logs in {folder / 'log'} say why."
    return DatabaseUnavailable(f"{what} in {folder}.", hint=hint, details={"log": output.strip()})


def refusal(error: OSError, folder: Path) -> DatabaseUnavailable:
    """The error for a data folder the system does not let us use."""
    reason = error.strerror or str(error)
    if error.errno in NO_SPACE:
        return _no_space(folder, reason)
    place = error.filename if isinstance(error.filename, str) else folder
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint = "Give this user the right to write there, or choose another data folder."
        return DatabaseUnavailable(f"{place} can't be written: {reason}.", hint=hint)
    return DatabaseUnavailable(f"{place} can't be used: {reason}.", hint="Choose another data folder.")


def _no_space(folder: Path, output: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"There is no space left on the disk for the database in {folder}.",
        hint="Free some space, or choose another data folder, then start again.",
        details={"log": output.strip()},
    )


def _refuse_long_path(layout: Layout) -> None:
    excess = len(os.fsencode(layout.run / SOCKET_NAME)) - SOCKET_PATH_BYTES
    if excess > 0:
        raise DatabaseUnavailable(
            f"The path of the data folder {layout.folder} is {excess} bytes too long for a Unix socket.",
            hint="Choose a data folder with a shorter path.",
        )


def _make_way(folder: Path, account: Account | None) -> None:
    for part in (*reversed(folder.parents), folder):
        try:
            part.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError:
            if part.is_dir():
                continue
            raise
        if account:
            # Entered by the server's user, listed by nobody: what is private inside has its own 0700.
            part.chmod(0o711)


def _tail(log: Path) -> str:
    # The server's user owns the logs: root must not be led to a file of somebody else.
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        start = max(0, os.fstat(descriptor).st_size - LOG_TAIL_BYTES)
        return os.pread(descriptor, LOG_TAIL_BYTES, start).decode(errors="replace")
    finally:
        os.close(descriptor)

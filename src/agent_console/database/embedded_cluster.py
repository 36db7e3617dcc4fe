"""One PostgreSQL cluster in one folder: made whole or not at all, started and stopped.

Who may start or stop it, and when, is decided in `embedded`; everything here runs under its change lock.
"""

import os
import secrets
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from psycopg import pq

from agent_console.database.embedded_account import run_program
from agent_console.database.embedded_folder import (
    PORT,
    SOCKET_NAME,
    SUPERUSER,
    Layout,
    failure,
    make_private,
    sync_folder,
)
from agent_console.database.embedded_locks import POLL_SECONDS, FileLock
from agent_console.database.embedded_programs import Programs, forget_other_copies
from agent_console.database.embedded_watch import keep_watch
from agent_console.domain.errors import DatabaseUnavailable

INIT_SECONDS = 300.0
START_SECONDS = 300.0
PATIENT_SECONDS = 3.0
STOP_SECONDS = 60.0
ABORT_SECONDS = 10.0

# Written into postgresql.conf once, where an administrator may change them.
FIRST_SETTINGS = (
    "max_connections=100",
    "shared_buffers=128MB",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_checkpoints=off",
)

# Given at every start, so that neither a file nor ALTER SYSTEM opens the server to the network. The folders
# are relative to the data, so the whole may be moved. Statements stay out of the log: they carry secrets.
FIXED_SETTINGS = (
    "listen_addresses=",
    f"port={PORT}",
    "unix_socket_directories=../run",
    "unix_socket_permissions=0700",
    "cluster_name=agent-console",
    "logging_collector=on",
    "log_directory=../log",
    "log_filename=postgres-%u.log",
    "log_file_mode=0600",
    "log_rotation_age=1d",
    "log_rotation_size=0",
    "log_truncate_on_rotation=on",
    "log_min_error_statement=panic",
)


def answers(dsn: str) -> bool:
    return pq.PGconn.ping(f"{dsn}&connect_timeout=2".encode()) == pq.Ping.OK


@dataclass(frozen=True)
class Cluster:
    layout: Layout
    programs: Programs
    say: Callable[[str], None]

    def make_if_missing(self) -> None:
        if self.layout.data.exists():
            self._refuse_foreign_data()
        else:
            self._make()
        for folder in (self.layout.run, self.layout.log):
            make_private(folder, self.programs.account)

    def ensure_running(self) -> None:
        begun = time.monotonic()
        launched = patient = False
        while not answers(self.layout.dsn("postgres")):
            launched = self._launch_if_gone(again=launched) or launched
            waited = time.monotonic() - begun
            if waited > START_SECONDS:
                raise self._failure("PostgreSQL does not answer", self.layout.log_tail())
            if waited > PATIENT_SECONDS and not patient:
                patient = True
                self.say("PostgreSQL is still starting; after a crash it reads its journal first.")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """End the server in order, and at once if that takes too long: its journal survives either way.

        A server that somebody started by hand holds no lock of ours and is left alone.
        """
        if self._gone(0):
            return
        for way, seconds in (("fast", STOP_SECONDS), ("immediate", ABORT_SECONDS)):
            # The lock tells when all is over; pg_ctl would also wait for a process that nobody buries.
            run_program(
                [self.programs.pg_ctl, "stop", "--no-wait", "-m", way],
                account=self.programs.account,
                seconds=ABORT_SECONDS,
                data=self.layout.data,
            )
            if self._gone(seconds):
                return
        self.say(f"PostgreSQL in {self.layout.folder} could not be stopped and keeps running.")

    def _refuse_foreign_data(self) -> None:
        data = self.layout.data
        try:
            found = (data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise DatabaseUnavailable(
                f"The folder {data} holds something else than a PostgreSQL database.",
                hint="Move it away, or choose another data folder.",
            ) from None
        if found != str(self.programs.major):
            raise DatabaseUnavailable(
                f"The data in {data} was made by PostgreSQL {found}, and this is {self.programs.major}.",
                hint="Choose another data folder, or the version of agent-console that made this one.",
            )
        owner = data.stat().st_uid
        if owner != (self.programs.account.uid if self.programs.account else os.geteuid()):
            raise DatabaseUnavailable(
                f"The data in {data} belongs to another user (uid {owner}).",
                hint="Run this program as that user, or choose another data folder.",
            )

    def _make(self) -> None:
        """Make the cluster beside its place and move it in when it is whole and on the disk."""
        folder = self.layout.folder
        self.say(f"Making a database in {folder}; this happens once.")
        with FileLock(self.layout.server_lock) as lock:
            # An initdb whose program was killed may still be writing: it inherited this lock.
            if not lock.take(INIT_SECONDS):
                raise self._failure("An earlier attempt to make the database is still at work", "")
            for leftover in folder.glob("data.new-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            making = folder / f"data.new-{secrets.token_hex(4)}"
            try:
                make_private(making, self.programs.account)
                self._initdb(making, lock)
                making.rename(self.layout.data)
                sync_folder(folder)
            finally:
                shutil.rmtree(making, ignore_errors=True)

    def _initdb(self, making: Path, lock: FileLock) -> None:
        settings = [word for setting in FIRST_SETTINGS for word in ("-c", setting)]
        access = ("--auth-local=trust", "--auth-host=reject", f"--username={SUPERUSER}")
        done = run_program(
            [self.programs.initdb, *self.programs.locale_options, *access, *settings],
            account=self.programs.account,
            seconds=INIT_SECONDS,
            data=making,
            inherited=[lock.descriptor],
        )
        if done.returncode != 0:
            raise self._failure("The database could not be made", done.stdout)

    def _launch_if_gone(self, *, again: bool) -> bool:
        with FileLock(self.layout.server_lock) as lock:
            if not lock.take_now():
                return False
            if again:
                raise self._failure("PostgreSQL did not start", self.layout.log_tail())
            self.say(f"Starting PostgreSQL {self.programs.major}.")
            self._clear_the_way()
            options = shlex.join(word for setting in FIXED_SETTINGS for word in ("-c", setting))
            with self.layout.start_log.open("wb") as output:
                run_program(
                    [self.programs.pg_ctl, "start", "--no-wait", "-o", options],
                    account=self.programs.account,
                    seconds=START_SECONDS,
                    data=self.layout.data,
                    output=output,
                    inherited=[lock.descriptor],
                )
            keep_watch(self.layout.folder, self.programs.major)
            return True

    def _clear_the_way(self) -> None:
        # No process of this cluster lives: its lock says so. A pid left in these files may by now belong to
        # any other process, which is usual in a container, and PostgreSQL would refuse to start.
        (self.layout.data / "postmaster.pid").unlink(missing_ok=True)
        (self.layout.run / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
        self.layout.forget_old_logs()
        forget_other_copies(self.programs, self.layout.folder)

    def _gone(self, seconds: float) -> bool:
        with FileLock(self.layout.server_lock) as lock:
            return lock.take(seconds)

    def _failure(self, what: str, output: str) -> DatabaseUnavailable:
        return failure(what, output, self.layout.folder)

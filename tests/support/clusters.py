"""PostgreSQL clusters for the tests: every supported version at hand, quick, and gone with the test run."""

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, LiteralString, TypeAlias, get_args

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from agent_console.database.embedded_account import Account, run_program, server_account
from agent_console.database.embedded_cluster import answers
from agent_console.database.embedded_folder import SUPERUSER, Layout, make_private, open_folder
from agent_console.database.embedded_programs import Programs, wheel_programs

Version: TypeAlias = Literal[15, 16, 18]

SECONDS = 60.0
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 * 1024**3
SYSTEM_PROGRAMS = "/usr/lib/postgresql/{version}/bin"

# A test cluster need not survive a power cut; everything that changes behaviour stays as it is in production.
SETTINGS = (
    "listen_addresses=",
    "port=5432",
    "unix_socket_directories=../run",
    "max_connections=300",
    "shared_buffers=128MB",
    "timezone=UTC",
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=on",
)


@dataclass(frozen=True)
class Cluster:
    version: Version
    layout: Layout

    def dsn(self, database: str = "postgres") -> str:
        return self.layout.dsn(database)


@dataclass(frozen=True)
class TemplateDatabase:
    """Databases cloned from a template; nobody may be connected to the template meanwhile."""

    cluster: Cluster
    administration: psycopg.Connection[TupleRow]

    def clone(self, template: str, name: str) -> None:
        statement = sql.SQL("create database {} template {} strategy file_copy")
        self.administration.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def drop(self, name: str) -> None:
        """Drop the database, whoever is still connected to it."""
        statement = sql.SQL("drop database if exists {} with (force)")
        self.administration.execute(statement.format(sql.Identifier(name)))

    def end_sessions(self, name: str) -> None:
        """Return when nobody is left; the server's own way to wait for that looks only ten times a second."""
        ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = %s"
        deadline = time.monotonic() + SECONDS
        while self._one(ended, name) != 0:
            assert time.monotonic() < deadline, f"sessions of {name} do not end"
            time.sleep(0.002)

    def transactions(self) -> object:
        """Moves with everything that anybody writes anywhere in the cluster, also with what is rolled back."""
        return self._one("select pg_snapshot_xmax(pg_current_snapshot())::text")

    def _one(self, statement: LiteralString, *values: object) -> object:
        row = self.administration.execute(statement, values).fetchone()
        assert row is not None
        return row[0]


@contextmanager
def template_database(cluster: Cluster) -> Iterator[TemplateDatabase]:
    """One connection for all clones: a new one costs as much as a clone does."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as administration:
        yield TemplateDatabase(cluster, administration)


def available_versions() -> tuple[Version, ...]:
    """16 and 18 come with the wheel, 15 only where the system has it."""
    versions: tuple[Version, ...] = get_args(Version)
    return tuple(version for version in versions if _programs(version, None) is not None)


@contextmanager
def cluster(version: Version, folder: Path) -> Iterator[Cluster]:
    """A cluster below `folder`, which as root must be open to other users: see `reachable_folder`."""
    account = server_account()
    programs = _programs(version, account)
    assert programs is not None, f"PostgreSQL {version} is not on this machine"
    layout = open_folder(folder, account)
    for private in (layout.data, layout.run):
        make_private(private, account)
    options = (*programs.locale_options, "--auth=trust", f"--username={SUPERUSER}", "--no-sync")
    _succeed([programs.initdb, *options], account, layout.data)
    _start(programs, layout)
    try:
        yield Cluster(version, layout)
    finally:
        _succeed([programs.pg_ctl, "stop", "-m", "immediate"], account, layout.data)


@contextmanager
def reachable_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """A folder that every user may enter, with a path short enough for a socket; pytest's own are neither.

    In memory where there is room: ext4 takes half a second to make the 300 files of a database when many
    files were deleted in the minute before, as tests that drop their databases do.
    """
    roomy = os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    folder = Path(tempfile.mkdtemp(prefix="ac-", dir=MEMORY if in_memory and roomy else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _programs(version: Version, account: Account | None) -> Programs | None:
    if version != 15:
        return wheel_programs(version, account)
    on_path = shutil.which("postgres")
    for folder in (
        Path(SYSTEM_PROGRAMS.format(version=version)),
        *([Path(on_path).parent] if on_path else []),
    ):
        if (folder / "initdb").exists() and _major(folder / "postgres") == version:
            return Programs(folder, version, account)
    return None


def _major(postgres: Path) -> int:
    said = run_program([postgres, "--version"], account=None, seconds=SECONDS).stdout
    return int(said.split()[2].split(".")[0])


def _start(programs: Programs, layout: Layout) -> None:
    options = shlex.join(word for setting in SETTINGS for word in ("-c", setting))
    with layout.start_log.open("wb") as log:
        run_program(
            [programs.pg_ctl, "start", "--no-wait", "-o", options],
            account=programs.account,
            seconds=SECONDS,
            data=layout.data,
            output=log,
        )
    deadline = time.monotonic() + SECONDS
    while not answers(layout.dsn("postgres")):
        assert time.monotonic() < deadline, layout.start_log.read_text()
        time.sleep(0.01)


def _succeed(command: list[str | Path], account: Account | None, data: Path) -> None:
    done = run_program(command, account=account, seconds=SECONDS, data=data)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout)

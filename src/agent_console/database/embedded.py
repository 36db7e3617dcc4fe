"""A real PostgreSQL in a folder, for as long as somebody uses it.

Every program that uses it holds a shared lock on one file; the kernel gives that lock back when the program
ends, however it ends. Whoever leaves and finds nobody else stops the server; when all were killed, the watch does
that was started with it. Joining and leaving exclude each other through a second lock, so nobody stops a server
that somebody else is just joining.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from agent_console.database.embedded_account import server_account
from agent_console.database.embedded_cluster import START_SECONDS, STOP_SECONDS, Cluster
from agent_console.database.embedded_folder import Layout, failure, open_folder, refusal, socket_dsn
from agent_console.database.embedded_locks import FileLock
from agent_console.database.embedded_programs import reachable_programs
from agent_console.domain.errors import DatabaseUnavailable

DATABASE = "agent_console"
IMPATIENT_SECONDS = 1.0
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class EmbeddedServer:
    """A running PostgreSQL that answers on a Unix socket and nowhere else."""

    socket_folder: Path
    version: str

    def dsn(self, database: str = DATABASE) -> str:
        return socket_dsn(self.socket_folder, database)


def _say_nothing(_: str) -> None:
    """For callers who show no progress."""


@contextmanager
def embedded_postgres(
    folder: Path, *, version: int = 18, say: Callable[[str], None] = _say_nothing
) -> Iterator[EmbeddedServer]:
    """The server in `folder`, made and started if need be, with the database `agent_console` in it.

    Blocks while the server starts, and while it stops when its last user leaves. Raises DatabaseUnavailable
    with the reason if there can be none.
    """
    with ExitStack() as leaving:
        with _explained(folder):
            server = _join(folder, version, say, leaving)
        yield server


def _join(folder: Path, version: int, say: Callable[[str], None], leaving: ExitStack) -> EmbeddedServer:
    account = server_account()
    layout = open_folder(folder, account)
    users = leaving.enter_context(FileLock(layout.users_lock))
    with FileLock(layout.change_lock) as change:
        _wait_for_turn(change, layout, say)
        cluster = Cluster(layout, reachable_programs(version, account, layout.folder), say)
        cluster.make_if_missing()
        users.take(START_SECONDS, shared=True)
        leaving.callback(_leave, cluster, users)
        cluster.ensure_running()
        return EmbeddedServer(layout.run, _prepare_database(layout))


def _wait_for_turn(change: FileLock, layout: Layout, say: Callable[[str], None]) -> None:
    if change.take(IMPATIENT_SECONDS):
        return
    say("Waiting for another program that is starting or stopping the database.")
    if not change.take(START_SECONDS):
        raise DatabaseUnavailable(
            f"Another program has been starting or stopping the database in {layout.folder} for too long.",
            hint=f"Continue or end the suspended program: fuser {layout.change_lock} names it.",
        )


def _prepare_database(layout: Layout) -> str:
    """Make our database if it is missing, and tell the version of the server that runs."""
    dsn = layout.dsn("postgres")
    with psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
        known = connection.execute("select from pg_database where datname = %s", [DATABASE])
        if known.rowcount == 0:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))
        return connection.info.parameter_status("server_version") or ""


def _leave(cluster: Cluster, users: FileLock) -> None:
    """Whoever can't get its turn to leave, leaves the server to the next one who comes."""
    try:
        with FileLock(cluster.layout.change_lock) as change:
            if change.take(STOP_SECONDS) and users.take_now():
                cluster.stop()
            # Before the change lock, or somebody who joins now would find this one in the way.
            users.release()
    except (OSError, subprocess.TimeoutExpired) as error:
        cluster.say(f"PostgreSQL in {cluster.layout.folder} was not stopped: {error}")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, folder) from error
    except subprocess.TimeoutExpired as error:
        raise failure("A PostgreSQL program did not come to its end", str(error), folder) from error
    except psycopg.Error as error:
        raise failure("PostgreSQL refused to be prepared", str(error), folder) from error

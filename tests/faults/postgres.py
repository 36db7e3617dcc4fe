"""A PostgreSQL whose every process can be killed, frozen and started again, and a standby of it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import make_conninfo

from agent_console.database.embedded_account import run_program, server_account
from agent_console.database.embedded_cluster import answers
from agent_console.database.embedded_folder import SUPERUSER, Layout, make_private, open_folder
from agent_console.database.embedded_programs import Programs, wheel_programs
from tests.agent.processes import PROC, children_of

SECONDS = 60.0
LOOK_SECONDS = 0.01
DATABASE = "agent_console"

# What was committed is in the system's hands when a process is killed; only a power cut would need more.
SETTINGS = (
    "listen_addresses=",
    "port=5432",
    "unix_socket_directories=../run",
    "shared_buffers=64MB",
    "timezone=UTC",
    "fsync=off",
    "restart_after_crash=on",
    "logging_collector=off",
)


def wait_until_so(holds: bool, deadline: float, what: str) -> bool:
    """For loops that look again and again: whether to go on, and a failure when it is too late."""
    if holds:
        return False
    assert time.monotonic() < deadline, what
    time.sleep(LOOK_SECONDS)
    return True


def is_alive(pid: int) -> bool:
    """Running, and not only waiting to be buried."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class Postgres:
    programs: Programs
    layout: Layout
    connections: int
    process: "subprocess.Popen[bytes] | None" = None
    stopped: list[int] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        return make_conninfo("", host=str(self.layout.run), port=5432, user=SUPERUSER, dbname=DATABASE)

    def run(self, program: str, *arguments: str) -> None:
        done = run_program(
            [self.programs.folder / program, *arguments], account=self.programs.account, seconds=SECONDS
        )
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        settings = [word for one in (*SETTINGS, f"max_connections={self.connections}") for word in ("-c", one)]
        account = self.programs.account
        with self.layout.start_log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs.folder / "postgres"), "-D", str(self.layout.data), *settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        deadline = time.monotonic() + SECONDS
        while wait_until_so(self.answers(), deadline, "PostgreSQL does not start"):
            assert self.process.poll() is None, self.layout.start_log.read_text()

    def answers(self) -> bool:
        return answers(self.layout.dsn("postgres"))

    def kill(self) -> None:
        """As if the machine were gone: none of its processes has a last word."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        children = [child.pid for child in children_of(self.process.pid)]
        for pid in (*children, self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        deadline = time.monotonic() + SECONDS
        while wait_until_so(not any(is_alive(pid) for pid in children), deadline, "it can't be killed"):
            continue
        self.process = None

    def freeze(self) -> None:
        assert self.process is not None
        self.stopped = [self.process.pid, *(child.pid for child in children_of(self.process.pid))]
        for pid in self.stopped:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "-D", str(self.layout.data), "-w")


@contextmanager
def own_postgres(folder: Path, *, connections: int = 100) -> Iterator[Postgres]:
    """A new cluster with an empty database; gone at the end, whether or not it was killed meanwhile."""
    made = _laid_out(folder, connections)
    options = (*made.programs.locale_options, "--auth=trust", f"--username={SUPERUSER}", "--no-sync")
    made.run("initdb", *options, "-D", str(made.layout.data))
    with _running(made):
        made.run("createdb", "-h", str(made.layout.run), "-U", SUPERUSER, DATABASE)
        yield made


@contextmanager
def standby_of(primary: Postgres, folder: Path) -> Iterator[Postgres]:
    """A copy that follows."""
    made = _laid_out(folder, primary.connections)
    source = ("-h", str(primary.layout.run), "-U", SUPERUSER, "-D", str(made.layout.data))
    primary.run("pg_basebackup", *source, "--checkpoint=fast", "--no-sync", "--write-recovery-conf")
    with _running(made):
        yield made


def _laid_out(folder: Path, connections: int) -> Postgres:
    account = server_account()
    layout = open_folder(folder, account)
    for private in (layout.data, layout.run):
        make_private(private, account)
    return Postgres(wheel_programs(18, account), layout, connections)


@contextmanager
def _running(made: Postgres) -> Iterator[None]:
    with ExitStack() as stack:
        stack.callback(lambda: made.kill() if made.process else None)
        stack.callback(made.thaw)
        made.start()
        yield

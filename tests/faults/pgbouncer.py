"""A real PgBouncer in transaction mode in front of a test cluster, as Debian and Ubuntu ship it."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from agent_console.database.embedded_account import server_account
from agent_console.database.embedded_folder import make_private
from tests.support.clusters import Cluster

SBIN = "/usr/sbin:/usr/local/sbin"
LOGIN = "console"
PORT = 6432
STOP_SECONDS = 20

# So few sessions that every caller gets one that another has used before.
SETTINGS = """
[databases]
* = host={cluster} port=5432

[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
listen_port = {port}
auth_type = trust
auth_file = {folder}/users.txt
admin_users = {login}
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
logfile = {folder}/pgbouncer.log
"""


@dataclass(frozen=True)
class Pooler:
    folder: Path

    def dsn(self, database: str) -> str:
        return make_conninfo("", host=str(self.folder), port=PORT, user=LOGIN, dbname=database)


def program() -> str:
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path=SBIN)
    if found is None:
        pytest.skip("PgBouncer is not on this machine and `make test` could not install it: apt install pgbouncer")
    return found


@contextmanager
def pooling(cluster: Cluster, folder: Path, *, sessions: int = 4) -> Iterator[Pooler]:
    """`folder` is made; the login has to exist in the cluster. As PostgreSQL does, it refuses to run as root."""
    account = server_account()
    make_private(folder, account)
    settings = folder / "pgbouncer.ini"
    facts = {"cluster": cluster.layout.run, "folder": folder, "port": PORT, "login": LOGIN, "sessions": sessions}
    settings.write_text(SETTINGS.format_map(facts))
    (folder / "users.txt").write_text(f'"{LOGIN}" ""\n')
    for written in (settings, folder / "users.txt"):
        written.chmod(0o644)
    running = subprocess.Popen(
        [program(), "--quiet", str(settings)],
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
    )
    try:
        _wait_for(folder, running)
        yield Pooler(folder)
    finally:
        running.kill()
        running.wait(STOP_SECONDS)


def _wait_for(folder: Path, running: "subprocess.Popen[bytes]") -> None:
    place = str(folder / f".s.PGSQL.{PORT}")
    while True:
        assert running.poll() is None, (folder / "pgbouncer.log").read_text()
        with socket.socket(socket.AF_UNIX) as trying:
            try:
                trying.connect(place)
            except OSError:
                continue
            return

"""The embedded PostgreSQL is killed while somebody uses it, as a system without memory does: it comes back."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from agent_console.database.embedded import embedded_postgres
from agent_console.database.embedded_cluster import answers
from tests.agent.processes import children_of
from tests.faults.postgres import is_alive, wait_until_so
from tests.support.clusters import reachable_folder

SECONDS = 60.0


def kill_everything(folder: Path) -> int:
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    for one in (pid, *(child.pid for child in children_of(pid))):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return pid


def running(folder: Path) -> bool:
    return (folder / "data" / "postmaster.pid").exists()


def test_what_was_committed_is_there_again_and_the_last_one_still_stops_it() -> None:
    with reachable_folder() as parent:
        folder = parent / "data"
        with embedded_postgres(folder) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as before:
                before.execute("create table kept as select 42 as answer")

                killed = kill_everything(folder)
            deadline = time.monotonic() + SECONDS
            while wait_until_so(not is_alive(killed) and answers(server.dsn()), deadline, "it does not come back"):
                continue
            with psycopg.connect(server.dsn()) as after:
                kept = after.execute("select answer from kept").fetchone()
        left = running(folder)

    assert kept == (42,)
    assert not left

"""Stops the embedded server when everybody who used it was killed, so that nothing is left running; and starts it
again when it was killed itself while somebody uses it.

A process of its own, started with the server: whoever is killed with 9, or must leave at once for a signal, can
no longer stop anything. It looks once a second and ends with the server; each start brings a watch of its own.
"""

import fcntl
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_console.database.embedded_cluster import Cluster

LOOK_SECONDS = 1.0
START_SECONDS = 30.0


def keep_watch(folder: Path, version: int) -> None:
    """Start the watch over the server in `folder`; it belongs to nobody and outlives us."""
    from agent_console.database.embedded_account import run_program

    command = [sys.executable, "-P", "-m", __name__, str(folder), str(version)]
    run_program(command, account=None, seconds=START_SECONDS)


def _watch(folder: Path, version: int) -> None:
    from agent_console.database.embedded_folder import Layout

    layout = Layout(folder)
    # Opened once: whoever removes the folder must not find a lock made anew in it.
    change, users, server = (
        os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        for lock in (layout.change_lock, layout.users_lock, layout.server_lock)
    )
    while True:
        time.sleep(LOOK_SECONDS)
        if not _taken(change):
            continue
        gone, unused = _taken(server), _taken(users)
        if gone and not unused:
            fcntl.flock(server, fcntl.LOCK_UN)
            if _started_again(layout.folder, version):
                return
        elif gone:
            return
        elif unused:
            _cluster(layout.folder, version).stop()
            return
        fcntl.flock(change, fcntl.LOCK_UN)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _started_again(folder: Path, version: int) -> bool:
    """Under the change lock. A server that did not stay has a watch of its own, which goes on trying."""
    from agent_console.domain.errors import DatabaseUnavailable

    try:
        _cluster(folder, version).ensure_running()
    except OSError:
        return False
    except DatabaseUnavailable:
        return True
    return True


def _cluster(folder: Path, version: int) -> "Cluster":
    from agent_console.database.embedded_account import server_account
    from agent_console.database.embedded_cluster import Cluster
    from agent_console.database.embedded_folder import open_folder
    from agent_console.database.embedded_programs import reachable_programs

    account = server_account()
    layout = open_folder(folder, account)
    return Cluster(layout, reachable_programs(version, account, layout.folder), lambda _: None)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _watch(Path(sys.argv[1]), int(sys.argv[2]))

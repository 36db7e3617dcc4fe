"""Stops the embedded server when everybody who used it was killed, so that nothing is left running.

A process of its own, started with the server: whoever is killed with 9, or must leave at once for a signal, can
no longer stop anything. It looks once a second and ends with the server, whoever stopped that.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

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
        if _taken(server):
            return
        if _taken(users):
            _stop(layout.folder, version)
            return
        fcntl.flock(change, fcntl.LOCK_UN)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(folder: Path, version: int) -> None:
    """Under the change lock, which ends with this process."""
    from agent_console.database.embedded_account import server_account
    from agent_console.database.embedded_cluster import Cluster
    from agent_console.database.embedded_folder import open_folder
    from agent_console.database.embedded_programs import reachable_programs

    account = server_account()
    layout = open_folder(folder, account)
    Cluster(layout, reachable_programs(version, account, layout.folder), lambda _: None).stop()


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _watch(Path(sys.argv[1]), int(sys.argv[2]))

"""`agent-console` for a shell, at the price of a fork: see passing_on."""

import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs import passing_on
from tests.support.warm_start import WarmProgram, warm_python

PATIENCE = 600.0
HEADER = struct.Struct("!I")


@dataclass(frozen=True)
class Asked:
    arguments: list[str]
    folder: Path
    environment: dict[str, str]
    files: list[int]


def program(folder: Path) -> None:
    """Put `agent-console` into this folder of the PATH."""
    path = folder / "agent-console"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{passing_on.__file__}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)


@contextmanager
def door(path: Path) -> Iterator[None]:
    """Start whatever is asked for at this socket, until the block ends."""
    warm_python()
    starting = threading.Lock()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        watching = threading.Thread(target=_welcome, args=(listening, starting), daemon=True)
        watching.start()
        yield
        listening.shutdown(socket.SHUT_RDWR)
        watching.join()


def _welcome(listening: socket.socket, starting: threading.Lock) -> None:
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(asking, starting), daemon=True).start()


def _serve(asking: socket.socket, starting: threading.Lock) -> None:
    with asking:
        asked = _heard(asking)
        with starting:
            running = _started(asked)
        asking.sendall(f"{running.pid}\n".encode())
        asking.sendall(f"{running.wait(PATIENCE)}\n".encode())


def _heard(asking: socket.socket) -> Asked:
    header, files, _, _ = socket.recv_fds(asking, HEADER.size, 3)
    told = asking.recv(HEADER.unpack(header)[0], socket.MSG_WAITALL).decode()
    count, folder, *rest = told.split("\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    environment = dict(variable.split("=", 1) for variable in variables)
    return Asked(arguments, Path(folder), environment, files)


def _started(asked: Asked) -> WarmProgram:
    stdin, stdout, stderr = asked.files
    running = warm_python().start(
        "tests.docs.leaving_at_once", *asked.arguments, environment=asked.environment, folder=asked.folder,
        stdin=stdin, stdout=stdout, stderr=stderr,
    )  # fmt: skip
    for file in asked.files:
        os.close(file)
    return running

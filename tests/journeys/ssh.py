"""A real SSH server on loopback, with keys of its own, that lets in whoever runs the tests."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import join

import pytest

from tests.journeys.terminal import wait_until

NEEDED = "This test needs an SSH server and its client: apt install openssh-server openssh-client."
# As root sshd wants this folder, which its service makes when it starts.
SEPARATION = Path("/run/sshd")
SETTINGS = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/operator.pub
PidFile {folder}/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PrintMotd no
"""


@dataclass(frozen=True)
class SshServer:
    folder: Path
    port: int
    pid: int

    def command(self, program: Sequence[str], environment: dict[str, str]) -> tuple[str, ...]:
        """What an operator types to run the program over there."""
        told = (
            "StrictHostKeyChecking=no",
            f"UserKnownHostsFile={self.folder}/known_hosts",
            "IdentitiesOnly=yes",
            "LogLevel=ERROR",
        )
        options = [word for option in told for word in ("-o", option)]
        there = join(["env", *(f"{name}={value}" for name, value in environment.items()), *program])
        way = ("-F", os.devnull, "-i", f"{self.folder}/operator", "-p", str(self.port))
        return ("ssh", "-tt", *way, *options, f"{getpass.getuser()}@127.0.0.1", there)

    def drop_connections(self) -> None:
        """As when the line breaks: nobody says goodbye, in either direction."""
        for pid in self.connections():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def connections(self) -> tuple[int, ...]:
        """The processes of the server that hold connections, and nothing that runs in them."""
        parents = {self.pid}
        for pid, parent, name in sorted(_processes()):
            if name == "sshd" and parent in parents:
                parents.add(pid)
        return tuple(parents - {self.pid})


def _processes() -> Iterator[tuple[int, int, str]]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            before, _, after = stat.read_text().rpartition(")")
            pid, _, name = before.partition(" (")
            yield int(pid), int(after.split()[1]), name


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if not (sshd and shutil.which("ssh") and shutil.which("ssh-keygen")):
        pytest.skip(NEEDED)
    for name in ("host", "operator"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = _free_port()
    settings = folder / "sshd_config"
    settings.write_text(SETTINGS.format(port=port, folder=folder))
    with _separation_folder(), (folder / "sshd.log").open("wb") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", settings], stdin=subprocess.DEVNULL, stderr=log)
        opened = SshServer(folder, port, server.pid)
        try:
            wait_until(lambda: _listens(port), (folder / "sshd.log").read_text)
            yield opened
        finally:
            opened.drop_connections()
            server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _separation_folder() -> Iterator[None]:
    is_missing = os.geteuid() == 0 and not SEPARATION.exists()
    if is_missing:
        SEPARATION.mkdir(mode=0o755)
    try:
        yield
    finally:
        if is_missing:
            SEPARATION.rmdir()

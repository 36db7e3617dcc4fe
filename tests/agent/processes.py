"""What runs on this machine, as /proc tells it."""

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Running:
    pid: int
    parent: int
    group: int
    state: str


def running() -> list[Running]:
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            found.append(Running(int(folder.name), int(parent), int(group), state))
    return found


def alive(pid: int) -> bool:
    """Running, and not only waiting to be reaped."""
    return any(one.pid == pid and one.state != "Z" for one in running())


def children_of(pid: int) -> list[Running]:
    return [one for one in running() if one.parent == pid]

"""How many cores a proof uses, and how many others use on the same machine meanwhile, as /proc tells it."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from tests.agent.processes import PROC

TICKS = os.sysconf("SC_CLK_TCK")


def _times(folder: Path) -> tuple[int, float]:
    """The parent, and the seconds that it and those children have spent whom it has buried."""
    words = (folder / "stat").read_text().rpartition(")")[2].split()
    return int(words[1]), sum(map(int, words[11:15])) / TICKS


def spent_by(roots: Collection[int]) -> float:
    """Seconds of the processor, by these processes and all that come of them."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)], seconds[int(folder.name)] = _times(folder)
            except OSError:
                continue
    ours, found = set(roots), set(roots)
    while found:
        found = {pid for pid, parent in parents.items() if parent in found} - ours
        ours |= found
    return sum(seconds.get(pid, 0.0) for pid in ours)


def spent_by_all() -> float:
    """Everything but idling and waiting for a disk; what the host gives to another machine counts too."""
    user, nice, system, _, _, *others = map(int, (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(others)) / TICKS


def parent_of(pid: int) -> int:
    return _times(PROC / str(pid))[0]


@dataclass
class Share:
    """Asked again and again: the cores that we, and others, have used since the last time."""

    roots: Collection[int]
    _before: tuple[float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        self._before = self._now()

    def since_last(self) -> tuple[float, float]:
        then, self._before = self._before, self._now()
        passed, ours, everybody = (now - before for now, before in zip(self._before, then, strict=True))
        passed = max(passed, 1 / TICKS)
        return ours / passed, max(0.0, (everybody - ours) / passed)

    def _now(self) -> tuple[float, float, float]:
        return time.monotonic(), spent_by(self.roots), spent_by_all()

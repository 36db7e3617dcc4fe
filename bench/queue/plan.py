"""How much is measured: everything, or a part of it while developing."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "RESULTS.md"

THROUGHPUT, SNAPSHOT, FINISHED, CONSOLES, ENQUEUE, HTTP = (
    "throughput",
    "snapshot",
    "finished",
    "consoles",
    "enqueue",
    "http",
)
PARTS = (THROUGHPUT, SNAPSHOT, FINISHED, CONSOLES, ENQUEUE, HTTP)


@dataclass(frozen=True)
class Plan:
    """What is asked for. `seconds` is one slice, after `warm_up`; `held` is how long a snapshot is held open."""

    depths: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    workers: tuple[int, ...] = (1, 8, 32)
    seconds: float = 6.0
    warm_up: float = 1.5
    turns: int = 3
    held: float = 60.0
    finished: int = 1_000_000
    parts: tuple[str, ...] = PARTS
    results: Path = RESULTS

    @property
    def usual_depth(self) -> int:
        """Where something is measured at one depth only."""
        return next((depth for depth in self.depths if depth >= 100_000), self.depths[-1])

    @property
    def most_workers(self) -> int:
        return max(self.workers)


WHOLE = Plan()
QUICK = Plan(depths=(100_000,), seconds=2.0, warm_up=1.0, turns=1, held=10.0, finished=100_000)


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(int(word.replace("_", "")) for word in words.split(","))


def _parts(words: str) -> tuple[str, ...]:
    chosen = tuple(words.split(","))
    if unknown := set(chosen) - set(PARTS):
        raise argparse.ArgumentTypeError(
            f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    return chosen


def plan_of(words: Sequence[str] | None = None) -> Plan:
    parser = argparse.ArgumentParser(prog="python -m bench.queue", description="The queue beside its peers.")
    parser.add_argument("--quick", action="store_true", help="100,000 queued only, short slices, one turn")
    parser.add_argument("--parts", type=_parts, help=f"some of {','.join(PARTS)}")
    parser.add_argument("--depths", type=_numbers, help="how many are queued, such as 1000,100000")
    parser.add_argument("--workers", type=_numbers, help="how many work, such as 1,8,32")
    parser.add_argument("--seconds", type=float, help="one slice, after warming up")
    parser.add_argument("--warm-up", type=float, dest="warm_up", help="seconds before each slice")
    parser.add_argument("--turns", type=int, help="slices of each; the median is told")
    parser.add_argument("--held", type=float, help="seconds for which a snapshot is held open")
    parser.add_argument("--finished", type=int, help="finished jobs beside the waiting ones")
    parser.add_argument("--results", type=Path, help="where the results are written")
    given = vars(parser.parse_args(words))
    start = QUICK if given.pop("quick") else WHOLE
    return Plan(**(vars(start) | {name: value for name, value in given.items() if value is not None}))

"""Memory of the real console while everything under it changes: flat, or this ends with exit code 1.

    python -m bench.console_memory [--minutes 5]

Twenty changes a second (new jobs, lines of output, acts, messages), a walk through all panes, a filter now and
then. The memory is what the process holds for itself alone (private pages). What is kept to be quick, such as how
words are laid out, fills up first; told is the slope of the first half, and of the second, which may be 24 MB an
hour.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from bench.terminal_fleet import announce, console, still_fleet
from bench.terminal_pty import DOWN, PAGE_DOWN, UP
from psycopg.types.json import Jsonb
from tests.support.fleet import Fleet

from agent_console.domain.ids import JobEventId, JobId, MessageId
from agent_console.repository.port import Topic

SLOPE_MOST = 24.0
CHANGE_SECONDS = 0.05
STEP_SECONDS = 1.0
WALK = ("0", "1", "2", "3", DOWN, PAGE_DOWN, "/type:bulk\r", "4", "\r", UP, "5", "6", PAGE_DOWN)


@dataclass(frozen=True)
class Reading:
    minutes: float
    megabytes: float


def private_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def slope(readings: list[Reading]) -> float:
    """Megabytes an hour, by the straight line that fits best."""
    line = statistics.linear_regression([one.minutes for one in readings], [one.megabytes for one in readings])
    return line.slope * 60


def changes(fleet: Fleet) -> Callable[[], None]:
    """One change at a time, each of another kind."""
    team_id, user_id = fleet.team_id(), fleet.user_id("ana@example.com")
    held = fleet.first_job("running")
    lane_id = fleet.one("select lane_id from jobs where id = %s", held)
    thread_id = fleet.one("select id from threads where title = 'Stock count, aisle by aisle'")
    numbers = cycle(range(10**9))

    def job() -> None:
        fleet.execute(
            "insert into jobs (team_id, id, lane_id, type, status, payload)"
            " values (%s, %s, %s, 'bulk', 'queued', %s)",
            *(team_id, JobId.new(), lane_id, Jsonb({"number": next(numbers)})),
        )
        announce(fleet, Topic.JOBS)

    def line() -> None:
        fleet.execute(
            "insert into job_events (team_id, id, job_id, message) values (%s, %s, %s, %s)",
            *(team_id, JobEventId.new(), held, f"page {next(numbers)} was read"),
        )
        announce(fleet, Topic.JOBS)

    def act() -> None:
        fleet.execute(
            "select append_audit(%s, 'system', null, null, 'bench', 'job.create', 'job', %s)",
            *(team_id, f"job_{next(numbers):026}"),
        )
        announce(fleet, Topic.AUDIT)

    def message() -> None:
        fleet.execute(
            "insert into messages (team_id, id, thread_id, author_type, author_user_id, content)"
            " values (%s, %s, %s, 'human', %s, %s)",
            *(team_id, MessageId.new(), thread_id, user_id, f"Aisle {next(numbers)} was counted again."),
        )
        announce(fleet, Topic.MESSAGES)

    kinds = cycle((job, line, act, message))

    def one() -> None:
        next(kinds)()

    return one


def watched(fleet: Fleet, minutes: float) -> list[Reading]:
    keys, change = cycle(WALK), changes(fleet)
    readings: list[Reading] = []
    with console(fleet) as program:
        program.bytes_until("Needs attention", "✓ connected")
        began = time.monotonic()
        while (passed := (time.monotonic() - began) / 60) < minutes:
            program.press(next(keys))
            program.bytes_during(STEP_SECONDS, CHANGE_SECONDS, change)
            readings.append(Reading(passed, private_megabytes(program.pid)))
            program.forget()
        assert program.is_running, "the console ended by itself"
    return readings


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=5.0)
    minutes: float = arguments.parse_args().minutes
    with still_fleet() as fleet:
        readings = watched(fleet, minutes)
    half = len(readings) // 2
    first, second = slope(readings[:half]), slope(readings[half:])
    for reading in readings[:: max(1, len(readings) // 10)]:
        print(f"{reading.minutes:>6.1f} min {reading.megabytes:>8.1f} MB")
    print(f"slope: first half {first:+.1f} MB/h, second half {second:+.1f} MB/h, at most {SLOPE_MOST:+.0f}")
    return 0 if second <= SLOPE_MOST else 1


if __name__ == "__main__":
    sys.exit(main())

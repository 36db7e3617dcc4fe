"""Bytes that the real console sends to a terminal of 120x40, beside pg_activity and htop in the same run.

    python -m bench.terminal_console [--idle 60] [--seconds 20]

First paint: from the start to the overview of a fleet, connected and still. An idle minute: the list of jobs while
nothing changes. Ten cells: how far ten jobs in sight have come changes every second. A tail: 50 acts a second come
into the trail that is followed, and 50 lines a second into the output of a job that is read. Ends with exit code 1
when more is sent than the limits allow. The peers refresh once a second and show what they show of this machine.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.terminal_fleet import announce, console, still_fleet
from bench.terminal_pty import COLUMNS, LINES, PtyProgram
from psycopg.conninfo import make_conninfo
from tests.support.fleet import AT, Fleet

from agent_console.domain.ids import JobEventId
from agent_console.repository.port import Topic

FIRST_PAINT_MOST = 25_000
IDLE_MOST = 0
TEN_CELLS_MOST = 600
TAIL_MOST = 25_000
LINES_A_SECOND = 50
SETTLED = 3.0

TEN_JOBS = "select id from jobs where type = 'bulk' order by id desc limit 10"
MOVED = """
    update jobs set progress = jsonb_build_object('percentage', 10 + before * 7 %% 83)
      from (select id as job_id, coalesce((progress ->> 'percentage')::int, 0) as before from jobs) as known
     where id = job_id and id = any(%s)
"""
ACT = "select append_audit(%s, 'system', null, null, 'bench', 'job.create', 'job', %s)"
LINE = "insert into job_events (team_id, id, job_id, message) values (%s, %s, %s, %s)"


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    unit: str
    most: float | None = None

    @property
    def within(self) -> bool:
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        told = f"{self.what:44}{self.value:>10,.0f} {self.unit:<8}"
        if self.most is None:
            return told
        return f"{told}at most {self.most:>7,.0f}   {'ok' if self.within else 'MISSED'}"


def ten_cells(fleet: Fleet) -> Callable[[], None]:
    ids = [row[0] for row in fleet.execute(TEN_JOBS)]

    def change() -> None:
        fleet.execute(MOVED, ids)
        announce(fleet, Topic.JOBS)

    return change


def an_act(fleet: Fleet) -> Callable[[], None]:
    team_id, numbers = fleet.team_id(), iter(range(10**9))

    def write() -> None:
        fleet.execute(ACT, team_id, f"job_{next(numbers):026}")
        announce(fleet, Topic.AUDIT)

    return write


def a_line(fleet: Fleet) -> Callable[[], None]:
    team_id, job_id, numbers = fleet.team_id(), fleet.first_job("running"), iter(range(10**9))

    def write() -> None:
        words = f"page {next(numbers):,} was read, 14 links were found and 3 of them are new"
        fleet.execute(LINE, team_id, JobEventId.new(), job_id, words)
        announce(fleet, Topic.JOBS)

    return write


def of_the_console(fleet: Fleet, idle: float, seconds: float) -> list[Figure]:
    fleet.add_jobs(60, since="2099-04-01")
    # No agent runs them, and only of a job that one runs may be said how far it is.
    fleet.execute("set session_replication_role = replica")
    fleet.execute("update jobs set created_at = %s where type = 'bulk'", AT)
    with console(fleet) as program:
        paint = len(program.bytes_until("Needs attention", "✓ connected"))
        program.press("3")
        program.bytes_until("all jobs", "bulk", quiet=SETTLED)
        still, _ = program.bytes_during(idle)
        cells, _ = program.bytes_during(seconds, 1.0, ten_cells(fleet))
        program.press("6")
        program.bytes_until("following", quiet=SETTLED)
        tail, _ = program.bytes_during(seconds, 1 / LINES_A_SECOND, an_act(fleet))
        output = output_of_a_job(program, fleet, seconds)
    return [
        Figure("first paint", paint, "bytes", FIRST_PAINT_MOST),
        Figure("an idle minute", still * 60 / idle, "bytes", IDLE_MOST),
        Figure("ten changed cells a second", cells / seconds, "bytes/s", TEN_CELLS_MOST),
        Figure(f"a trail of {LINES_A_SECOND} acts a second", tail / seconds, "bytes/s", TAIL_MOST),
        Figure(f"a job's output of {LINES_A_SECOND} lines a second", output / seconds, "bytes/s", TAIL_MOST),
    ]


def output_of_a_job(program: PtyProgram, fleet: Fleet, seconds: float) -> int:
    program.press(":")
    program.bytes_until("agents configure")
    program.press(f"open {fleet.first_job('running')}\r")
    program.bytes_until("payload, as given", "story", quiet=SETTLED)
    received, _ = program.bytes_during(seconds, 1 / LINES_A_SECOND, a_line(fleet))
    return received


def of_a_peer(what: str, command: list[str], seconds: float) -> Figure | None:
    path = shutil.which(command[0], path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if path is None:
        print(f"{what}: not measured, it is not installed")
        return None
    program = PtyProgram([path, *command[1:]])
    program.bytes_until_quiet(0.5, SETTLED)
    received, _ = program.bytes_during(seconds)
    is_running = program.is_running
    program.close()
    if not is_running:
        print(f"{what}: not measured, it ended by itself")
        return None
    return Figure(what, received / seconds, "bytes/s")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--idle", type=float, default=60.0, help="seconds in which nothing changes")
    arguments.add_argument("--seconds", type=float, default=20.0, help="seconds for every other figure")
    asked = arguments.parse_args()
    with still_fleet() as fleet:
        figures = of_the_console(fleet, asked.idle, asked.seconds)
        activity = ["pg_activity", "--refresh", "1", make_conninfo(fleet.administration)]
        peers = (
            of_a_peer("pg_activity", activity, asked.seconds),
            of_a_peer("htop", ["htop", "-d", "10"], asked.seconds),
        )
    print(f"{COLUMNS}x{LINES}")
    for figure in (*figures, *(peer for peer in peers if peer is not None)):
        print(figure)
    return 0 if all(figure.within for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

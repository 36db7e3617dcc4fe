"""From a key to the paint in the real console, with a million of everything behind it, beside a bare Textual list.

    python -m bench.console_depth [--jobs 1000000] [--messages 1000000] [--acts 10000000] [--presses 30]

The cursor goes up and down in the list of jobs, in a thread and in the trail, and in a stock DataTable that stands
alone on its screen, with rows as wide as those of ours beside their detail, in turns, in ptys of 120x40; the time
is that from writing the key to reading the first byte of what it changes. Ends with exit code 1 when the median of
a list is more than 1.5 times that of the bare one. Beside it stands what the programs spent on the processor up to
then; on a busy machine that has more in it than the key, because the byte is read late.

The console is opened read-only: else it would do the duties meanwhile, and seal ten million acts.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.messages import FILL as FILL_MESSAGES
from bench.messages import WORDS
from bench.terminal_fleet import console, still_fleet
from bench.terminal_pty import DOWN, PAGE_DOWN, UP, Paint, PtyProgram
from tests.support.fleet import Fleet
from textual.app import App, ComposeResult
from textual.widgets import DataTable

LIMIT = 1.5
BARE_ROWS = 200
BARE_COLUMNS = {"Status": 13, "Type": 8, "Agent": 10, "Progress or reason": 17, "Try": 4, "Prio": 3, "Age": 5}
"""Seventy-four cells with what DataTable puts around each, as the list of jobs has on 120 columns."""
AT_ONCE = 100_000
QUIET = 0.3
PAGES_DOWN = 5
THREAD = "Stock count, aisle by aisle"

# As much in a row as an act has; the hash is of nothing, since nobody proves this trail.
FILL_ACTS = """
    insert into audit_log (team_id, id, actor_type, actor_user_id, actor_label, action, resource_type, resource_id,
                           ip, user_agent, metadata, event_hash, created_at)
    select %s, overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid, 'human', %s, 'Ana Costa',
           'message.create', 'message', 'msg_' || lpad(n::text, 26, '0'), '10.0.0.1', 'agent-console/0.1.0',
           jsonb_build_object('recipients', n %% 4, 'broadcast', n %% 7 = 0), %s, now()
      from generate_series(%s::int, %s::int) as n
"""


@dataclass(frozen=True)
class Depth:
    jobs: int
    messages: int
    acts: int


def fill(fleet: Fleet, depth: Depth) -> None:
    """By the database itself, without the triggers that think about every row."""
    team_id, user_id = fleet.team_id(), fleet.user_id("ana@example.com")
    thread_id = fleet.one("select id from threads where title = %s", THREAD)

    def some_messages(first: int, last: int) -> None:
        fleet.execute(FILL_MESSAGES, team_id, thread_id, user_id, WORDS, depth.messages, first, last)

    def some_acts(first: int, last: int) -> None:
        fleet.execute(FILL_ACTS, team_id, user_id, bytes(32), first, last)

    fleet.execute("set session_replication_role = replica")
    filled("jobs", depth.jobs, lambda _first, last: fleet.add_jobs(last, status="succeeded"), depth.jobs)
    filled("messages", depth.messages, some_messages)
    filled("acts", depth.acts, some_acts)
    fleet.execute("set session_replication_role = origin")
    fleet.execute("vacuum analyze")


def filled(what: str, count: int, fill_some: Callable[[int, int], None], at_once: int = AT_ONCE) -> None:
    began = time.monotonic()
    for first in range(1, count + 1, at_once):
        fill_some(first, min(count, first + at_once - 1))
    print(f"{count:>12,} {what} in {time.monotonic() - began:,.0f} s", flush=True)


def go_to_jobs(program: PtyProgram) -> None:
    program.press("3")
    program.bytes_until("all jobs", "assigned")
    program.press(PAGE_DOWN * PAGES_DOWN)
    program.bytes_until("bulk")


def go_to_thread(program: PtyProgram) -> None:
    program.press("4")
    # Beside its detail the list has no room for the whole title.
    program.bytes_until(THREAD.split(",", maxsplit=1)[0])
    # The one with the newest message may stand anywhere: it is found by its name.
    program.press("\x06")
    program.bytes_until("Find")
    program.press("aisle\r")
    program.bytes_until("n N aisle")
    program.press("\r")
    program.bytes_until("restarted it", "following")


def go_to_trail(program: PtyProgram) -> None:
    program.press("6")
    program.bytes_until("message.create")
    program.press(PAGE_DOWN * PAGES_DOWN)
    program.bytes_until("message.create")


LISTS: dict[str, Callable[[PtyProgram], None]] = {
    "jobs": go_to_jobs,
    "a thread": go_to_thread,
    "the trail": go_to_trail,
}


class BareList(App[None]):
    """A list as Textual has it, and nothing else."""

    CSS = "DataTable { width: 74; }"

    def compose(self) -> ComposeResult:
        yield DataTable[str](cursor_type="row")

    def on_mount(self) -> None:
        table: DataTable[str] = self.query_one(DataTable)
        for title, width in BARE_COLUMNS.items():
            table.add_column(title, width=width)
        for number in range(BARE_ROWS):
            agent, progress = f"atlas-{number % 7}", f"page {number} of 9"
            table.add_row("✓ succeeded", "bulk", agent, progress, "1/3", "0", f"{number}s")


@contextmanager
def bare_list() -> Iterator[PtyProgram]:
    program = PtyProgram([sys.executable, "-m", "bench.console_depth", "--bare"])
    program.bytes_until("atlas-1")
    try:
        yield program
    finally:
        program.close()


def compared(ours: PtyProgram, bare: PtyProgram, presses: int) -> tuple[list[Paint], list[Paint]]:
    """Up and down, so that both stay where they are."""
    taken: tuple[list[Paint], list[Paint]] = ([], [])
    for press in range(presses):
        for program, found in zip((ours, bare), taken, strict=True):
            found.append(program.paint_after(DOWN if press % 2 else UP, QUIET))
    return taken


def report(name: str, ours: list[Paint], bare: list[Paint]) -> bool:
    waited = [1000 * statistics.median(one.waited for one in found) for found in (ours, bare)]
    spent = [1000 * statistics.median(one.spent for one in found) for found in (ours, bare)]
    ratio = waited[0] / waited[1]
    print(
        f"{name:<12}{waited[0]:>8.1f} ms, bare {waited[1]:.1f} ms: {ratio:.2f} times, at most {LIMIT}"
        f"   {'ok' if ratio <= LIMIT else 'MISSED'}"
        f"   (processor: {spent[0]:.1f} ms, bare {spent[1]:.1f} ms: {spent[0] / spent[1]:.2f} times)"
    )
    return ratio <= LIMIT


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--jobs", type=int, default=1_000_000)
    arguments.add_argument("--messages", type=int, default=1_000_000)
    arguments.add_argument("--acts", type=int, default=10_000_000)
    arguments.add_argument("--presses", type=int, default=30)
    arguments.add_argument("--bare", action="store_true", help="only open the bare list")
    asked = arguments.parse_args()
    if asked.bare:
        BareList().run()
        return 0
    within = True
    with still_fleet(in_memory=False) as fleet:
        fill(fleet, Depth(asked.jobs, asked.messages, asked.acts))
        with console(fleet, "--read-only") as ours, bare_list() as bare:
            ours.bytes_until("Needs attention", "✓ connected")
            for name, go in LISTS.items():
                go(ours)
                # The first presses warm up what both have to make once.
                compared(ours, bare, 4)
                within = report(name, *compared(ours, bare, asked.presses)) and within
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())

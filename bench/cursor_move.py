"""Does a million rows feel like a thousand? Cursor moves and paging, side by side in one process.

    python bench/cursor_move.py

A step is what the table does for one key: move, find the lines that changed, render them. The two
lengths take turns step by step, so that whatever else the machine does falls on both. Ends with exit
code 1 when the long list costs more than LIMIT times the short one.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.pilot import Pilot

from agent_console.tui.widgets.rows import Row
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_columns import Column

SHORT = 1_000
LONG = 1_000_000
STEPS = 100
MOUNTS = 7
LIMIT = 1.5

COLUMNS = (
    Column("id", "Job", 12),
    Column("type", "Type", None),
    Column("status", "Status", 12),
    Column("age", "Age", 8, align="right"),
)


@dataclass(frozen=True)
class Jobs:
    """Rows made when asked, so that what is measured is the table and not a list of rows."""

    length: int

    def __len__(self) -> int:
        return self.length

    def row_at(self, index: int) -> Row:
        status = Content.styled("running" if index % 3 else "failed", "bold" if index % 3 else "red")
        return Row(f"job_{index}", (Content(f"job_{index:08}"), Content("report"), status, Content(f"{index}s")))

    def index_of(self, row_id: str) -> int | None:
        return int(row_id.removeprefix("job_"))


def table_of(length: int) -> VirtualTable:
    return VirtualTable(COLUMNS, Jobs(length), empty=Content("No jobs"))


class Stage(App[None]):
    def compose(self) -> ComposeResult:
        yield Horizontal()


@dataclass(frozen=True)
class Key:
    name: str
    press: Callable[[VirtualTable], None]
    undo: Callable[[VirtualTable], None]


KEYS = (
    Key("cursor down", VirtualTable.action_cursor_down, VirtualTable.action_cursor_up),
    Key("page down", VirtualTable.action_page_down, VirtualTable.action_page_up),
    Key("end", VirtualTable.action_last_row, VirtualTable.action_first_row),
)


def timed_step(table: VirtualTable, step: Callable[[VirtualTable], None]) -> float:
    started = time.perf_counter()
    step(table)
    table.render_lines(table.size.region)
    return time.perf_counter() - started


def compare(key: Key, short: VirtualTable, long: VirtualTable) -> tuple[float, float]:
    """Median seconds of one step, in the short list and in the long one."""
    took: dict[VirtualTable, list[float]] = {short: [], long: []}
    for table in took:
        table.move_to(f"job_{len(table.source) // 2}")
        table.render_lines(table.size.region)
    for step in range(STEPS):
        for table in (short, long) if step % 2 else (long, short):
            took[table].append(timed_step(table, key.press))
            took[table].append(timed_step(table, key.undo))
    return statistics.median(took[short]), statistics.median(took[long])


async def seconds_to_ready(pilot: Pilot[None], length: int) -> float:
    """From making the table to its lines being on the screen of a running app."""
    started = time.perf_counter()
    table = table_of(length)
    await pilot.app.query_one(Horizontal).mount(table)
    await pilot.pause()
    table.render_lines(table.size.region)
    took = time.perf_counter() - started
    await table.remove()
    return took


async def bytes_held(pilot: Pilot[None], length: int) -> int:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    table = table_of(length)
    await pilot.app.query_one(Horizontal).mount(table)
    await pilot.pause()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await table.remove()
    return after - before


async def measure() -> bool:
    within = True
    async with Stage().run_test(size=(160, 40)) as pilot:
        await seconds_to_ready(pilot, SHORT)
        ready = [
            (await seconds_to_ready(pilot, SHORT), await seconds_to_ready(pilot, LONG)) for _ in range(MOUNTS)
        ]
        held = (await bytes_held(pilot, SHORT), await bytes_held(pilot, LONG))
        short, long = table_of(SHORT), table_of(LONG)
        await pilot.app.query_one(Horizontal).mount(short, long)
        await pilot.pause()
        print(f"{'':<14}{SHORT:>12,}{LONG:>14,}   ratio")
        for key in KEYS:
            few, many = compare(key, short, long)
            within = within and many <= LIMIT * few
            print(f"{key.name:<14}{few * 1000:>9.3f} ms{many * 1000:>11.3f} ms{many / few:>8.2f}")
        few, many = (statistics.median(column) for column in zip(*ready, strict=True))
        print(f"{'ready':<14}{few * 1000:>9.1f} ms{many * 1000:>11.1f} ms{many / few:>8.2f}")
        print(f"{'memory':<14}{held[0] / 1e6:>9.2f} MB{held[1] / 1e6:>11.2f} MB{held[1] / held[0]:>8.2f}")
    return within


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)

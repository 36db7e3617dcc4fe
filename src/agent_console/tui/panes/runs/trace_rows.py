"""A request as a tree: who asked whom, how each of it stands, and what waits for a person."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from textual.content import Content

from agent_console.domain.ids import RunId
from agent_console.domain.redact import redact
from agent_console.domain.runs import Run, TraceKind, TraceRow
from agent_console.domain.spans import span
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.runs.looks import run_status
from agent_console.tui.widgets.rows import Row
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("who", "Who was asked", 26, min_width=14),
    Column("status", "Status", 12, min_width=12),
    Column("for", "For", 7, align="right"),
    Column("what", "What", None, min_width=20),
)
NAME_SHOWN = 60
ERROR_SHOWN = 300
BRANCH, LAST, TRUNK, NOTHING = "├ ", "└ ", "│ ", "  "


def row_id(row: TraceRow) -> str:
    return str(row.run_id or row.approval_id)


def seconds_of(row: TraceRow, now: datetime) -> float | None:
    """How long it has run, or has waited: it goes on with the clock until it has ended."""
    since = row.started_at
    return None if since is None else ((row.ended_at or now) - since).total_seconds()


def trunks(rows: Sequence[TraceRow]) -> Iterator[str]:
    """What is drawn before each row. The rows come in the order of the tree, each below what asked for it."""
    levels = _levels(rows)
    for place, level in enumerate(levels):
        drawn = ""
        for upper in range(1, level + 1):
            goes_on = _goes_on(levels, place, upper)
            if upper == level:
                drawn += BRANCH if goes_on else LAST
            else:
                drawn += TRUNK if goes_on else NOTHING
        yield drawn


def _levels(rows: Sequence[TraceRow]) -> list[int]:
    """How deep each row stands below those that are shown; who asked for one may be hidden from the reader."""
    level_of: dict[RunId | None, int] = {}
    levels = []
    for row in rows:
        level = level_of[row.parent_run_id] + 1 if row.parent_run_id in level_of else 0
        levels.append(level)
        if row.run_id is not None:
            level_of[row.run_id] = level
    return levels


def _goes_on(levels: Sequence[int], place: int, level: int) -> bool:
    """Whether another row of this level follows before the tree comes back to a level above it."""
    for below in levels[place + 1 :]:
        if below <= level:
            return below == level
    return False


def trace_rows(rows: Sequence[TraceRow], runs: Mapping[RunId, Run], now: datetime) -> tuple[Row, ...]:
    return tuple(
        Row(row_id(row), _cells(row, drawn, runs.get(row.run_id) if row.run_id else None, now))
        for row, drawn in zip(rows, trunks(rows), strict=True)
    )


def _cells(row: TraceRow, drawn: str, run: Run | None, now: datetime) -> tuple[Content, ...]:
    seconds = seconds_of(row, now)
    name = agent_text(row.agent or str(row.agent_id), "bold", limit=NAME_SHOWN)
    return (
        system_text(drawn, "$foreground-muted") + name,
        run_status(run.shown_status if run is not None and row.ended_at is None else row.status),
        system_text("-" if seconds is None else span(seconds)),
        _what(row, run),
    )


def _what(row: TraceRow, run: Run | None) -> Content:
    if row.kind is TraceKind.APPROVAL:
        return system_text("waits for a person", "$text-warning")
    if run is not None and (said := run.error_message or run.error_code):
        return agent_text(redact(said[:ERROR_SHOWN]), "$text-error", limit=200)
    if row.started_at is None and row.ended_at is None:
        return system_text("waits for its agent", "$text-warning")
    if run is not None and run.requested_by is not None and not run.delegation_path:
        return system_text("asked by ", "$foreground-muted") + agent_text(run.requested_by, limit=NAME_SHOWN)
    return system_text("")

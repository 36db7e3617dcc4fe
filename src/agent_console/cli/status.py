"""The plain text status: what a console would show first, for a pipe, a log or a terminal that can't do more."""

import sys
from datetime import datetime

from agent_console.cli.output import OutputForm, emit, write
from agent_console.cli.shown import AGENT_COLUMNS, DEPTH_COLUMNS
from agent_console.domain.agents import AgentQuery, PoolStatus
from agent_console.domain.duties import duty_warnings
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import Pause
from agent_console.domain.records import Nothing
from agent_console.domain.safe_text import safe_text
from agent_console.domain.spans import ago
from agent_console.repository.operations import AGENTS_LIST, ME, POOL_STATUS, QUEUE_DEPTH
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.operations.explaining import QUEUE_STATS
from agent_console.repository.port import Repository

AGENTS_SHOWN = 20


def pool_line(pool: PoolStatus) -> str:
    """The badge in words."""
    if pool.state == "offline":
        return "Offline: no agent is online"
    if pool.state == "idle":
        return f"{pool.idle_count} idle of {pool.online_count} online, nothing runs"
    return f"{pool.running_jobs_count} jobs running, {pool.idle_count} idle of {pool.online_count} online"


def pause_line(pause: Pause, now: datetime) -> str:
    by = f" by {pause.by}" if pause.by else ""
    held = "jobs that run may finish" if pause.mode is PauseMode.DRAIN else "jobs that ran are queued again"
    return f"PAUSED for {ago(pause.since, now)}{by}: {pause.reason} (nothing is claimed, {held})"


async def print_status(repository: Repository) -> None:
    """Everything is asked before anything is printed: half a status would be a wrong one."""
    me = await repository.call(ME, Nothing())
    pool = await repository.call(POOL_STATUS, Nothing())
    depth = await repository.call(QUEUE_DEPTH, Nothing())
    stats = await repository.call(QUEUE_STATS, Nothing())
    duties = await repository.call(DUTIES_LIST, Nothing())
    agents = await repository.call(AGENTS_LIST, AgentQuery(limit=AGENTS_SHOWN))
    out = sys.stdout
    lines = [
        f"team {me.team}, as {me.name} ({me.role.value}), {me.database_version}",
        f"pool: {pool_line(pool)}; {pool.offline_count} offline, {pool.error_count} in error",
        *(() if depth.pause is None else (pause_line(depth.pause, depth.at),)),
        *(f"WARNING: {warning}" for warning in (*stats.warnings, *duty_warnings(duties.items))),
    ]
    oldest = f", the oldest queued for {ago(depth.oldest_queued_at, depth.at)}" if depth.oldest_queued_at else ""
    lines.append(f"queue{oldest}:")
    write(out, "".join(f"{safe_text(line)}\n" for line in lines) + "\n")
    emit(depth.depths, DEPTH_COLUMNS, OutputForm.TABLE)
    write(out, "\n")
    emit(agents.items, AGENT_COLUMNS, OutputForm.TABLE, next_page=agents.next)

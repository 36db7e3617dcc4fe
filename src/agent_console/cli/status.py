"""The plain text status: what a console would show first, for a pipe, a log or a terminal that can't do more."""

import sys

from agent_console.cli.output import OutputForm, emit
from agent_console.cli.shown import AGENT_COLUMNS, DEPTH_COLUMNS
from agent_console.domain.agents import AgentQuery, PoolStatus
from agent_console.domain.records import Nothing
from agent_console.domain.safe_text import safe_text
from agent_console.domain.spans import ago
from agent_console.repository.operations import AGENTS_LIST, ME, POOL_STATUS, QUEUE_DEPTH
from agent_console.repository.port import Repository

AGENTS_SHOWN = 20


def pool_line(pool: PoolStatus) -> str:
    """The badge in words."""
    if pool.state == "offline":
        return "Offline: no agent is online"
    if pool.state == "idle":
        return f"{pool.idle_count} idle of {pool.online_count} online, nothing runs"
    return f"{pool.running_jobs_count} jobs running, {pool.idle_count} idle of {pool.online_count} online"


async def print_status(repository: Repository) -> None:
    """Everything is asked before anything is printed: half a status would be a wrong one."""
    me = await repository.call(ME, Nothing())
    pool = await repository.call(POOL_STATUS, Nothing())
    depth = await repository.call(QUEUE_DEPTH, Nothing())
    agents = await repository.call(AGENTS_LIST, AgentQuery(limit=AGENTS_SHOWN))
    out = sys.stdout
    out.write(safe_text(f"team {me.team}, as {me.name} ({me.role.value}), {me.database_version}") + "\n")
    out.write(f"pool: {pool_line(pool)}; {pool.offline_count} offline, {pool.error_count} in error\n")
    oldest = f", the oldest queued for {ago(depth.oldest_queued_at, depth.at)}" if depth.oldest_queued_at else ""
    out.write(f"queue{oldest}:\n\n")
    emit(depth.depths, DEPTH_COLUMNS, OutputForm.TABLE)
    out.write("\n")
    emit(agents.items, AGENT_COLUMNS, OutputForm.TABLE, next_page=agents.next)

"""How states look: always a glyph and a word, with a colour on top for those who see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from agent_console.domain.states import Presence
from agent_console.tui.agent_text import system_text

if TYPE_CHECKING:
    from agent_console.domain.agents import Agent, PoolStatus
    from agent_console.domain.jobs import Job

PRESENCE: dict[Presence, tuple[str, str]] = {
    Presence.ONLINE: ("●", "$text-success"),
    Presence.OFFLINE: ("○", "$foreground-muted"),
    Presence.ERROR: ("▲", "$text-error"),
    Presence.UNKNOWN: ("?", "$foreground-muted"),
    Presence.REVOKED: ("✗", "$foreground-muted"),
}

# Nothing here is blue: with 16 colours that is the background of the cursor's line.
JOB_STATUS: dict[str, tuple[str, str]] = {
    "scheduled": ("◔", "$foreground-muted"),
    "queued": ("○", ""),
    "assigned": ("◑", "bold"),
    "running": ("●", "$text-success"),
    "cancelling": ("◌", "$text-warning"),
    "succeeded": ("✓", "$foreground-muted"),
    "failed": ("✗", "$text-error"),
    "dead_letter": ("▲", "$text-error bold"),
    "cancelled": ("-", "$foreground-muted"),
}

BAR_CELLS = 8


def agent_status(agent: Agent) -> Content:
    if agent.drained_at is not None and agent.status is Presence.ONLINE:
        return system_text("◐ drained", "$text-warning")
    glyph, style = PRESENCE[agent.status]
    return system_text(f"{glyph} {agent.status.value}", style)


def job_status(job: Job) -> Content:
    glyph, style = JOB_STATUS[job.shown_status]
    return system_text(f"{glyph} {job.shown_status}", style)


def progress_bar(percentage: float) -> str:
    """The number first: in a narrow column the bar is what may be cut. 100 % is said of the whole only."""
    shown = max(0.0, min(100.0, percentage))
    full = round(shown * BAR_CELLS / 100)
    return f"{int(shown):3}% {'█' * full}{'░' * (BAR_CELLS - full)}"


def pool_badge(pool: PoolStatus | None, *, stale: bool = False) -> Content:
    """Red and Offline when nobody is online, the idle count when nobody works, else the running count."""
    text, style = _pool_look(pool)
    return system_text(text, "$foreground-muted" if stale else style)


def _pool_look(pool: PoolStatus | None) -> tuple[str, str]:
    if pool is None:
        return "· pool", "$foreground-muted"
    if pool.state == "offline":
        return "○ Offline", "$text-error bold"
    if pool.state == "idle":
        return f"◌ {pool.idle_count} idle", "$text-primary"
    return f"● {pool.running_jobs_count} running", "$text-success bold"

"""Upcoming jobs: what is scheduled, and how long that is from now."""

from dataclasses import replace
from datetime import UTC, datetime

from textual.content import Content

from agent_console.domain.jobs import Job, JobQuery
from agent_console.domain.spans import until
from agent_console.domain.states import JobStatus
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.jobs.lists import JOBS
from agent_console.tui.panes.list_kind import ListGroup
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("due", "Due", 10),
    Column("at", "At (UTC)", 16),
    Column("type", "Type", None, min_width=11),
    Column("needs", "Needs", 20, drop=1),
    Column("prio", "Prio", 4, align="right", drop=2),
    Column("by", "By", 10, drop=3),
)


def upcoming_cells(job: Job, now: datetime) -> tuple[Content, ...]:
    at = "" if job.scheduled_for is None else f"{job.scheduled_for.astimezone(UTC):%Y-%m-%d %H:%M}"
    return (
        system_text(until(job.scheduled_for, now), "bold"),
        system_text(at, "$foreground-muted"),
        agent_text(job.type, limit=100),
        agent_text(" ".join(job.required_capabilities), "$foreground-muted", limit=120),
        system_text(str(job.priority), "" if job.priority else "$foreground-muted"),
        agent_text(job.created_by or "-", "$foreground-muted", limit=60),
    )


UPCOMING = replace(
    JOBS,
    name="upcoming",
    title="Upcoming jobs",
    columns=COLUMNS,
    query=lambda group, limit, after: JobQuery(status=(JobStatus.SCHEDULED,), limit=limit, after=after),
    cells=upcoming_cells,
    empty="Nothing is scheduled.\nA job waits here when it is created with a time, or comes from a collection.",
    groups=(ListGroup("all", ""),),
    above="jobs",
)

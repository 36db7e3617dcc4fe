"""What an agent works on and what belongs to it: asked for when its detail is opened."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.agents import Agent
from agent_console.domain.collections import Collection, CollectionQuery
from agent_console.domain.jobs import Job, JobQuery
from agent_console.domain.records import PAGE_LIMIT_MAX, Page
from agent_console.domain.sessions import Session, SessionQuery
from agent_console.domain.spans import ago, until
from agent_console.domain.states import JobStatus, SessionStatus
from agent_console.repository.operations import JOBS_LIST
from agent_console.repository.operations.sessions import SESSIONS_LIST
from agent_console.repository.operations.storage import COLLECTIONS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Listing, Remark, SheetPart
from agent_console.tui.looks import job_status
from agent_console.tui.panes.detail_part import DetailPart
from agent_console.tui.panes.jobs.lists import job_news
from agent_console.tui.widgets.virtual_table_columns import Column

SHOWN = 10

JOB_COLUMNS = (
    Column("status", "Status", 13, min_width=13),
    Column("type", "Type", 16, min_width=8),
    Column("age", "Age", 7, align="right"),
    Column("news", "Progress or reason", None, min_width=8),
)
SESSION_COLUMNS = (Column("id", "Id", 30, min_width=12), Column("age", "Open for", None))
COLLECTION_COLUMNS = (
    Column("type", "Type", 6),
    Column("name", "Name", None, min_width=12),
    Column("next", "Next refresh", 16, drop=1),
)


def _jobs(page: Page[Job], _agent: Agent, now: datetime) -> tuple[SheetPart, ...]:
    rows = tuple(
        (
            job_status(job),
            agent_text(job.type, limit=100),
            system_text(ago(job.created_at, now), "$foreground-muted"),
            job_news(job, now),
        )
        for job in page.items
    )
    return _listed(JOB_COLUMNS, rows, "There are more." if page.next else "")


def _sessions(page: Page[Session], agent: Agent, now: datetime) -> tuple[SheetPart, ...]:
    still_open = [session for session in page.items if session.status is SessionStatus.ACTIVE]
    rows = tuple(
        (
            system_text(str(session.id)),
            system_text(f"open for {ago(session.created_at, now)}", "$foreground-muted"),
        )
        for session in still_open[:SHOWN]
    )
    left = max(agent.open_sessions, len(still_open)) - len(rows)
    return _listed(SESSION_COLUMNS, rows, f"{left:,} more." if left > 0 else "")


def _collections(page: Page[Collection], _agent: Agent, now: datetime) -> tuple[SheetPart, ...]:
    rows = tuple(
        (
            system_text(collection.type.value, "$foreground-muted"),
            agent_text(collection.name, limit=200),
            system_text(f"next {until(collection.next_refresh_at, now) or '-'}", "$foreground-muted"),
        )
        for collection in page.items
    )
    return _listed(COLLECTION_COLUMNS, rows, "There are more." if page.next else "")


def _listed(
    columns: tuple[Column, ...], rows: tuple[tuple[Content, ...], ...], more: str
) -> tuple[SheetPart, ...]:
    """Nothing is left out in silence."""
    remark = (Remark(system_text(more, "$foreground-muted")),) if more else ()
    return (Listing(columns, rows), *remark) if rows else remark


CURRENT_JOBS = DetailPart(
    title="current jobs",
    topics=frozenset({Topic.JOBS}),
    operation=JOBS_LIST,
    asked=lambda agent: JobQuery(agent_id=agent.id, status=(JobStatus.ASSIGNED, JobStatus.RUNNING), limit=SHOWN),
    shown=_jobs,
    nothing="It works on nothing.",
)
RECENT_JOBS = DetailPart(
    title="recent jobs",
    hint="w opens them all",
    topics=frozenset({Topic.JOBS}),
    operation=JOBS_LIST,
    asked=lambda agent: JobQuery(agent_id=agent.id, limit=SHOWN),
    shown=_jobs,
    nothing="It has had none.",
)
OPEN_SESSIONS = DetailPart(
    title="open sessions",
    hint="s opens them all",
    topics=frozenset({Topic.SESSIONS, Topic.AGENTS}),
    operation=SESSIONS_LIST,
    asked=lambda agent: SessionQuery(agent_id=agent.id, limit=PAGE_LIMIT_MAX) if agent.open_sessions else None,
    shown=_sessions,
    nothing="None is open.",
)
BOUND_COLLECTIONS = DetailPart(
    title="bound collections",
    topics=frozenset({Topic.COLLECTIONS, Topic.AGENTS}),
    operation=COLLECTIONS_LIST,
    asked=lambda agent: CollectionQuery(bound_agent_id=agent.id, limit=SHOWN),
    shown=_collections,
    nothing="None is bound to it.",
)

AGENT_PARTS = (CURRENT_JOBS, RECENT_JOBS, OPEN_SESSIONS, BOUND_COLLECTIONS)

"""Jobs by a filter that no single index serves: a walk along the one that leaves least, of bounded length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Subquery, and_, or_, select, union_all

from agent_console.database.tables import jobs
from agent_console.domain.filters import Filter
from agent_console.domain.ids import JobId, TeamId
from agent_console.domain.jobs import JOB_FILTERS, JobFilter, JobQuery
from agent_console.domain.list_order import ListOrder
from agent_console.domain.states import JobStatus
from agent_console.repository.postgres.filter_terms import either, ids_of_age, ids_said, of_age, with_words_or_id
from agent_console.repository.postgres.pages import position
from agent_console.repository.postgres.registry.agent_words import agents_said
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST, walked
from agent_console.repository.postgres.work import Work

SAID_BY_FIELD = ("agent_id", "collection_id", "tool", "type")
"""What has an index of its own, the one that usually leaves least first."""
MANY = frozenset({JobStatus.QUEUED, JobStatus.SUCCEEDED, JobStatus.CANCELLED})
"""States in which a queue may hold most of its jobs."""
LOOKED_AT = ("type", "tool", "affinity_key", "agent_id", "created_at")
"""What a filter looks at besides the state."""


@dataclass(frozen=True)
class JobMatch:
    """What a filter says of jobs; agents are told by their ids."""

    asked: Filter
    agents: tuple[Any, ...] = ()
    not_agents: tuple[Any, ...] = ()

    @property
    def ids(self) -> tuple[JobId, ...]:
        return ids_said(self.asked, JobId)

    @property
    def states(self) -> tuple[JobStatus, ...]:
        return tuple(map(JobStatus, self.asked.wanted("status")))

    def holds(self, rows: FromClause) -> ColumnElement[bool]:
        asked, found = self.asked, rows.c
        return and_(
            either(found.status, asked.wanted("status"), asked.unwanted("status")),
            either(found.type, asked.wanted("type"), asked.unwanted("type")),
            either(found.tool, asked.wanted("tool"), asked.unwanted("tool")),
            either(found.affinity_key, asked.wanted("affinity"), asked.unwanted("affinity")),
            either(found.agent_id, self.agents, self.not_agents),
            of_age(asked, found.created_at),
            with_words_or_id(asked, JobId, found.id, found.type, found.tool),
        )


async def job_match(work: Work, text: str) -> JobMatch:
    """The filter with its agents looked up."""
    asked = JOB_FILTERS.read(text)
    said = await agents_said(work, asked, "agent")
    return JobMatch(asked, said.wanted, said.unwanted)


def walked_jobs(
    team_id: TeamId, query: JobQuery, match: JobMatch, columns: Sequence[ColumnElement[Any]]
) -> Subquery:
    """The jobs that one page looks at, in the order of the list."""
    newest = query.order is ListOrder.NEWEST
    walk = select(*columns).where(jobs.c.team_id == team_id, *ids_of_age(match.asked, jobs.c.id))
    if match.ids:
        walk = walk.where(jobs.c.id.in_(match.ids))
    if (after := position(query.after, JobId)) is not None:
        walk = walk.where(jobs.c.id < after if newest else jobs.c.id > after)
    walk = walk.order_by(jobs.c.id.desc() if newest else jobs.c.id)
    states = _states(query, match)
    named = _named(query, match)
    if named is not None and (not states or MANY & set(states)):
        return walked(walk.where(named))
    if len(states) <= 1:
        return walked(walk.where(*(jobs.c.status == status.value for status in states)))
    pages = (walk.where(jobs.c.status == status.value).limit(WALKED_AT_MOST).subquery() for status in states)
    merged = union_all(*(select(page) for page in pages)).subquery()
    return walked(select(merged).order_by(merged.c.id.desc() if newest else merged.c.id))


def _states(query: JobFilter, match: JobMatch) -> tuple[JobStatus, ...]:
    return tuple(dict.fromkeys(query.status or match.states))


def _named(query: JobFilter, match: JobMatch) -> ColumnElement[bool] | None:
    """The one value of an indexed column that all of them have."""
    by_filter = {
        "agent_id": match.agents,
        "tool": match.asked.wanted("tool"),
        "type": match.asked.wanted("type"),
    }
    for name in SAID_BY_FIELD:
        value = getattr(query, name)
        values = by_filter.get(name, ()) if value is None else (value,)
        if len(values) == 1:
            return jobs.c[name].in_(values)
    return None


def kept_jobs(query: JobQuery, match: JobMatch, walk: Subquery) -> ColumnElement[bool]:
    """Everything that is asked for, also what the walk has chosen by."""
    parts = [walk.c[name] == value for name in SAID_BY_FIELD if (value := getattr(query, name)) is not None]
    if query.status:
        parts.append(or_(*(walk.c.status == status.value for status in query.status)))
    return and_(match.holds(walk), *parts)


def order_of(query: JobQuery, rows: FromClause) -> tuple[ColumnElement[Any], ...]:
    return (rows.c.id.desc() if query.order is ListOrder.NEWEST else rows.c.id,)

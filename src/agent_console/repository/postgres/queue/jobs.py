"""Jobs: listing them by keyset pages, reading one, putting one into the queue."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, Subquery, and_, bindparam, select, union_all

from agent_console.database.tables import agents, jobs, users
from agent_console.domain.ids import JobId, RunId, TeamId
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob, QueueDepth, StatusDepth
from agent_console.domain.list_order import ListOrder
from agent_console.domain.records import Nothing, Page
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_GET, JOBS_LIST, QUEUE_DEPTH
from agent_console.repository.port import Topic
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.queue.job_changes import no_job
from agent_console.repository.postgres.queue.job_filters import (
    SAID_BY_FIELD,
    JobMatch,
    job_match,
    kept_jobs,
    order_of,
    walked_jobs,
)
from agent_console.repository.postgres.queue.paused import pause_of
from agent_console.repository.postgres.queue.putting_in import KEPT, job_row, put_in
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.routing import routed
from agent_console.repository.postgres.queue.stats import exact_depths, oldest_queued
from agent_console.repository.postgres.walked_pages import kept_page, last_walked
from agent_console.repository.postgres.work import Work, answers

JOB_COLUMNS = tuple(jobs.c[name] for name in KEPT)


def with_names(page: Subquery, order: ListOrder = ListOrder.NEWEST) -> Select[Any]:
    """Add the names a reader wants, by key and only for the rows of one page."""
    holder = and_(agents.c.team_id == page.c.team_id, agents.c.id == page.c.agent_id)
    maker = and_(users.c.team_id == page.c.team_id, users.c.id == page.c.created_by_user_id)
    return (
        select(page, agents.c.name.label("agent_name"), users.c.full_name.label("created_by"))
        .select_from(page.outerjoin(agents, holder).outerjoin(users, maker))
        .order_by(page.c.id.desc() if order is ListOrder.NEWEST else page.c.id)
    )


# Made once: putting such a statement together takes longer than asking it.
ONE_JOB = with_names(
    select(jobs.c.team_id, *JOB_COLUMNS)
    .where(jobs.c.team_id == bindparam("of_team"), jobs.c.id == bindparam("of_job"))
    .subquery()
)


def newest_jobs(team_id: TeamId, query: JobQuery) -> Select[Any]:
    """One page in the order of one index, from either end. Several states are several such pages, merged."""
    after = position(query.after, JobId)
    limit = query.limit + 1
    newest = query.order is ListOrder.NEWEST

    def page(status: JobStatus | None) -> Select[Any]:
        wanted = select(jobs.c.team_id, *JOB_COLUMNS).where(jobs.c.team_id == team_id)
        if status is not None:
            wanted = wanted.where(jobs.c.status == status.value)
        if after is not None:
            wanted = wanted.where(jobs.c.id < after if newest else jobs.c.id > after)
        for name in SAID_BY_FIELD:
            if (value := getattr(query, name)) is not None:
                wanted = wanted.where(jobs.c[name] == value)
        return wanted.order_by(jobs.c.id.desc() if newest else jobs.c.id).limit(limit)

    states = dict.fromkeys(query.status)
    if len(states) <= 1:
        return page(next(iter(states), None))
    merged = union_all(*(select(page(status).subquery()) for status in states)).subquery()
    return select(merged).order_by(merged.c.id.desc() if newest else merged.c.id).limit(limit)


@answers(JOBS_LIST)
async def list_jobs(work: Work, query: JobQuery) -> Page[Job]:
    if query.filter is not None:
        return await _filtered(work, query, await job_match(work, query.filter))
    wanted = with_names(newest_jobs(work.caller.team_id, query).subquery(), query.order)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Job], rows, query.limit, JobId)


async def _filtered(work: Work, query: JobQuery, match: JobMatch) -> Page[Job]:
    walk = walked_jobs(work.caller.team_id, query, match, (jobs.c.team_id, *JOB_COLUMNS))
    rows = (await work.connection.execute(filtered_page(query, match, walk))).mappings().all()
    page = page_of(Page[Job], rows, query.limit, JobId)
    if page.next is not None:
        return page
    end = await last_walked(work, walk, partial(order_of, query))
    return page if end is None else page.model_copy(update={"next": str(JobId.of(end["id"]))})


def filtered_page(query: JobQuery, match: JobMatch, walk: Subquery) -> Select[Any]:
    kept = kept_page(walk, partial(kept_jobs, query, match), partial(order_of, query), query.limit)
    return with_names(kept.subquery(), query.order)


@answers(JOBS_GET)
async def get_job(work: Work, asked: JobAsked) -> Job:
    return await job_of(work, asked.job_id)


async def job_of(work: Work, job_id: JobId) -> Job:
    asked = {"of_team": work.caller.team_id, "of_job": job_id}
    found = (await work.connection.execute(ONE_JOB, asked)).mappings().first()
    if found is None:
        raise no_job(job_id)
    return Job.model_validate(dict(found))


@dataclass(frozen=True)
class Enqueued:
    id: JobId
    status: JobStatus
    at: datetime


async def enqueue(work: Work, new: NewJob, run_id: RunId | None = None) -> Enqueued | None:
    """Put a job into its lane and begin its story; None when its idempotency key was used meanwhile.

    The audit row is the caller's: an act that makes a job on the way is one act.
    """
    route = await routed(work, new)
    row = job_row(new, route, run_id)
    made = await put_in(work, [row])
    if not made.made:
        return None
    enqueued = Enqueued(JobId(str(row["id"])), JobStatus(made.status), made.at)
    work.announce(Topic.JOBS, enqueued.id)
    if enqueued.status is JobStatus.QUEUED:
        work.announce(Topic.WORK, place_of(route.lane_id, route.bound_agent_id))
    return enqueued


@answers(QUEUE_DEPTH)
async def queue_depth(work: Work, request: Nothing) -> QueueDepth:
    found = await exact_depths(work.connection, work.caller.team_id)
    oldest = await oldest_queued(work.connection, work.caller.team_id)
    depths = tuple(StatusDepth(status=status, count=count, capped=False) for status, count in found.items())
    return QueueDepth(depths=depths, oldest_queued_at=oldest.created_at, at=oldest.at, pause=await pause_of(work))

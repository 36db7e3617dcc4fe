"""Jobs: listing them by keyset pages, reading one, putting one into the queue."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, Subquery, and_, bindparam, select, union_all

from agent_console.database.tables import agents, collections, connectors, jobs, users
from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.ids import AgentId, ConnectorId, JobId, RunId, TeamId
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob, QueueDepth, StatusDepth
from agent_console.domain.list_order import ListOrder
from agent_console.domain.records import Nothing, Page
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, JOBS_LIST, QUEUE_DEPTH
from agent_console.repository.operations.fleet import JOB_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.queue.explaining import warnings_for
from agent_console.repository.postgres.queue.job_filters import (
    JobMatch,
    job_match,
    kept_jobs,
    order_of,
    walked_jobs,
)
from agent_console.repository.postgres.queue.lanes import lane_of
from agent_console.repository.postgres.queue.paused import pause_of
from agent_console.repository.postgres.queue.putting_in import Route, job_row, put_in
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.stats import exact_depths, oldest_queued
from agent_console.repository.postgres.walked_pages import kept_page, last_walked
from agent_console.repository.postgres.work import Work, answers

JOB_COLUMNS = tuple(jobs.c[name] for name in Job.model_fields if name in jobs.c)


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
        for name in ("type", "agent_id", "collection_id", "tool"):
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
        raise NotFound(f"There is no job {job_id}.", hint="List them: agent-console jobs list")
    return Job.model_validate(dict(found))


@answers(JOBS_CREATE)
async def create_job(work: Work, new: NewJob) -> Job:
    if new.idempotency_key and (earlier := await _made_before(work, new)):
        return earlier
    made = await enqueue(work, new)
    if made is None:
        return await _first_with_key(work, new)
    await _tell_audit(work, new, made)
    job = await job_of(work, made.id)
    return job.model_copy(update={"warnings": await warnings_for(work, made.id)})


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


async def routed(work: Work, new: NewJob) -> Route:
    bound_agent_id, connector_id = await route_of(work, new)
    lane_id = await lane_of(
        work,
        bound_agent_id=bound_agent_id,
        required_capabilities=new.required_capabilities,
        job_type=new.type,
        repository=new.repository,
        connector_id=connector_id,
    )
    return Route(lane_id, bound_agent_id, connector_id)


async def _made_before(work: Work, new: NewJob) -> Job | None:
    """The same key and the same request is the same job; the same key for something else is a mistake."""
    known = select(jobs.c.id).where(
        jobs.c.team_id == work.caller.team_id, jobs.c.idempotency_key == new.idempotency_key
    )
    if (found := (await work.connection.execute(known)).scalar()) is None:
        return None
    earlier = await job_of(work, JobId.of(found))
    if (earlier.type, earlier.payload) != (new.type, new.payload):
        raise Conflict(
            "This idempotency key was used for another job.",
            hint="Use a new key for new work.",
            details={"job_id": str(earlier.id)},
        )
    return earlier


async def _first_with_key(work: Work, new: NewJob) -> Job:
    earlier = await _made_before(work, new)
    if earlier is None:
        raise Conflict("Another request with this idempotency key was just undone.", hint="Try again.")
    return earlier


async def route_of(work: Work, new: NewJob) -> tuple[AgentId | None, ConnectorId | None]:
    """Where the job must go: what it says itself, or what its collection is bound to."""
    team_id = work.caller.team_id
    bound_agent_id, connector_id = new.bound_agent_id, new.connector_id
    if new.collection_id is not None:
        wanted = select(collections.c.bound_agent_id, collections.c.connector_id).where(
            collections.c.team_id == team_id,
            collections.c.id == new.collection_id,
            collections.c.deleted_at.is_(None),
        )
        # Shared, so that nobody deletes it between this look and the job that refers to it.
        wanted = wanted.with_for_update(read=True)
        collection = (await work.connection.execute(wanted)).first()
        if collection is None:
            raise NotFound(
                f"There is no collection {new.collection_id}.", hint="List them: agent-console collections list"
            )
        if collection.bound_agent_id not in (None, bound_agent_id) and bound_agent_id is not None:
            raise Conflict(
                f"Collection {new.collection_id} is bound to {collection.bound_agent_id}.",
                hint="Leave the agent out, or name the bound one.",
            )
        bound_agent_id = collection.bound_agent_id or bound_agent_id
        connector_id = connector_id or collection.connector_id
    if new.connector_id is not None:
        known = (
            select(connectors.c.id)
            .where(
                connectors.c.team_id == team_id,
                connectors.c.id == new.connector_id,
                connectors.c.deleted_at.is_(None),
            )
            .with_for_update(read=True)
        )
        if (await work.connection.execute(known)).first() is None:
            raise NotFound(
                f"There is no connector {new.connector_id}.", hint="List them: agent-console connectors list"
            )
    if bound_agent_id is not None:
        able = select(agents.c.revoked_at).where(
            agents.c.team_id == team_id, agents.c.id == bound_agent_id, agents.c.deleted_at.is_(None)
        )
        # Whoever deletes an agent waits for this, and this for them; nobody else does, and the agent works on.
        able = able.with_for_update(read=True, key_share=True)
        agent = (await work.connection.execute(able)).first()
        if agent is None:
            raise NotFound(f"There is no agent {bound_agent_id}.", hint="List them: agent-console agents list")
        if agent.revoked_at is not None:
            raise Conflict(
                f"Agent {bound_agent_id} is revoked and will never take it.", hint="Choose another agent, or none."
            )
    return bound_agent_id, connector_id


async def _tell_audit(work: Work, new: NewJob, made: Enqueued) -> None:
    facts: dict[str, str | int | bool | None] = {
        "type": new.type,
        "priority": new.priority,
        "bound_agent_id": None if new.bound_agent_id is None else str(new.bound_agent_id),
        "collection_id": None if new.collection_id is None else str(new.collection_id),
        "scheduled": made.status is JobStatus.SCHEDULED,
    }
    event = AuditEvent(action=JOB_CREATED, resource_type="job", resource_id=str(made.id), metadata=facts)
    await audit.append(work, event, made.at)


@answers(QUEUE_DEPTH)
async def queue_depth(work: Work, request: Nothing) -> QueueDepth:
    found = await exact_depths(work.connection, work.caller.team_id)
    oldest = await oldest_queued(work.connection, work.caller.team_id)
    depths = tuple(StatusDepth(status=status, count=count, capped=False) for status, count in found.items())
    return QueueDepth(depths=depths, oldest_queued_at=oldest.created_at, at=oldest.at, pause=await pause_of(work))

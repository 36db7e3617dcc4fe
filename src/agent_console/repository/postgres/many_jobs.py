"""Many jobs at once: one look at each different route, one statement for all the rows and their stories."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import AgentId, ConnectorId, Id, JobId, LaneId
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import JobsMade, NewJobs
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY, JOBS_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.changes import NAMED_AT_MOST
from agent_console.repository.postgres.jobs import route_of
from agent_console.repository.postgres.lanes import lane_of
from agent_console.repository.postgres.release import place_of
from agent_console.repository.postgres.work import Work, answers

TYPES_NAMED = 10

INSERT = text("""
    with made as (
        insert into jobs (team_id, id, lane_id, type, status, priority, payload, tool, repository, collection_id,
                          connector_id, bound_agent_id, required_capabilities, affinity_key, idempotency_key,
                          max_attempts, max_run_seconds, scheduled_for, look_at, signed, signing_nonce,
                          created_by_user_id, requested_by_user_id, updated_by_user_id)
        select :team_id, g.id, g.lane_id, g.type,
               case when g.scheduled_for > now() then 'scheduled' else 'queued' end, g.priority, g.payload, g.tool,
               g.repository, g.collection_id, g.connector_id, g.bound_agent_id, g.required_capabilities,
               g.affinity_key, g.idempotency_key, g.max_attempts, g.max_run_seconds, g.scheduled_for,
               case when g.scheduled_for > now() then g.scheduled_for else '-infinity' end, g.signed,
               g.signing_nonce, :user_id, g.requested_by_user_id, :user_id
          from jsonb_to_recordset(cast(:jobs as jsonb)) as g (
               id uuid, lane_id uuid, type text, priority integer, payload jsonb, tool text, repository text,
               collection_id uuid, connector_id uuid, bound_agent_id uuid, required_capabilities jsonb,
               affinity_key text, idempotency_key text, max_attempts integer, max_run_seconds integer,
               scheduled_for timestamptz, signed boolean, signing_nonce text, requested_by_user_id uuid)
            on conflict (team_id, idempotency_key) where idempotency_key is not null do nothing
     returning id, status
    ), told as (
        insert into job_events (team_id, id, job_id, message, payload, created_by_user_id)
        select :team_id, new_id(), id, 'created as ' || status, jsonb_build_object('to', status), :user_id
          from made
    )
    select count(*) as made, now() as at,
           case when count(*) < :expected then array_agg(id) end as ids
      from made
""")
# Served by jobs_idempotency_uq.
BY_KEY = text("""
    select id, idempotency_key, type, payload, now() as at from jobs
     where team_id = :team_id and idempotency_key = any (:keys)
""")


@dataclass(frozen=True)
class Route:
    lane_id: LaneId
    bound_agent_id: AgentId | None
    connector_id: ConnectorId | None


@answers(JOBS_CREATE_MANY)
async def create_jobs(work: Work, new: NewJobs) -> JobsMade:
    _require_distinct_keys(new.jobs)
    routes = await _routes(work, new.jobs)
    rows = [_row(job, route) for job, route in zip(new.jobs, routes, strict=True)]
    facts = {"team_id": work.caller.team_id, "user_id": work.caller.user_id}
    made = (await work.connection.execute(INSERT, facts | {"jobs": json.dumps(rows), "expected": len(rows)})).one()
    ids = [JobId(str(row["id"])) for row in rows]
    if made.ids is not None or not made.made:
        ids = await _with_earlier(work, new.jobs, ids, set(made.ids or ()))
    _announce(work, ids, routes)
    types = sorted({job.type for job in new.jobs})
    metadata: dict[str, str | int | bool | None] = {
        "made": made.made,
        "repeated": len(rows) - made.made,
        "types": ", ".join(types[:TYPES_NAMED]) + (", …" if len(types) > TYPES_NAMED else ""),
    }
    event = AuditEvent(action=JOBS_CREATED, resource_type="job", resource_id=str(ids[0]), metadata=metadata)
    await audit.append(work, event, made.at)
    return JobsMade(ids=tuple(ids), made=made.made)


async def _with_earlier(work: Work, jobs: Sequence[NewJob], ids: Sequence[JobId], made: set[UUID]) -> list[JobId]:
    """Who was made before stands in the place of who was not made now."""
    earlier = await _earlier(work, jobs)
    return [
        job_id if job_id in made else JobId.of(_same(job, earlier)) for job, job_id in zip(jobs, ids, strict=True)
    ]


async def _routes(work: Work, jobs: Sequence[NewJob]) -> list[Route]:
    """Most of many jobs go the same few ways: each is looked up once."""
    known: dict[tuple[object, ...], Route] = {}
    routes = []
    for job in jobs:
        way = (
            *(job.bound_agent_id, job.collection_id, job.connector_id),
            *(job.required_capabilities, job.type, job.repository),
        )
        if way not in known:
            known[way] = await _route(work, job)
        routes.append(known[way])
    return routes


async def _route(work: Work, job: NewJob) -> Route:
    bound_agent_id, connector_id = await route_of(work, job)
    lane_id = await lane_of(
        work,
        bound_agent_id=bound_agent_id,
        required_capabilities=job.required_capabilities,
        job_type=job.type,
        repository=job.repository,
        connector_id=connector_id,
    )
    return Route(lane_id, bound_agent_id, connector_id)


def _row(job: NewJob, route: Route) -> dict[str, object]:
    return {
        "id": _word(JobId.new()),
        "lane_id": _word(route.lane_id),
        "type": job.type,
        "priority": job.priority,
        "payload": job.payload,
        "tool": job.tool,
        "repository": job.repository,
        "collection_id": _word(job.collection_id),
        "connector_id": _word(route.connector_id),
        "bound_agent_id": _word(route.bound_agent_id),
        "required_capabilities": job.required_capabilities,
        "affinity_key": job.affinity_key,
        "idempotency_key": job.idempotency_key,
        "max_attempts": job.max_attempts,
        "max_run_seconds": job.max_run_seconds,
        "scheduled_for": None if job.scheduled_for is None else job.scheduled_for.isoformat(),
        "signed": job.signed,
        "signing_nonce": secrets.token_hex(16) if job.signed else None,
        "requested_by_user_id": _word(job.requested_by_user_id),
    }


def _word(row: Id | None) -> str | None:
    return None if row is None else UUID(int=row.int).hex


def _require_distinct_keys(jobs: Sequence[NewJob]) -> None:
    keys = [job.idempotency_key for job in jobs if job.idempotency_key is not None]
    if len(set(keys)) == len(keys):
        return
    twice = next(key for key in keys if keys.count(key) > 1)
    raise Invalid(
        "Two of these jobs have the same idempotency key.",
        hint="Give each its own.",
        details={"fields": [{"field": "jobs", "problem": f"the key {twice!a} is there twice"}]},
    )


async def _earlier(work: Work, jobs: Sequence[NewJob]) -> dict[str, Row[Any]]:
    keys = [job.idempotency_key for job in jobs if job.idempotency_key is not None]
    found = await work.connection.execute(BY_KEY, {"team_id": work.caller.team_id, "keys": keys})
    return {row.idempotency_key: row for row in found}


def _same(job: NewJob, earlier: dict[str, Row[Any]]) -> UUID:
    """The same key and the same request is the same job; the same key for something else is a mistake."""
    found = earlier.get(job.idempotency_key or "")
    if found is None:
        raise Conflict("Another request with one of these idempotency keys was just undone.", hint="Try again.")
    if (found.type, found.payload) != (job.type, job.payload):
        raise Conflict(
            "One of these idempotency keys was used for another job.",
            hint="Use a new key for new work. None of these jobs was made.",
            details={"job_id": str(JobId.of(found.id)), "idempotency_key": job.idempotency_key},
        )
    job_id: UUID = found.id
    return job_id


def _announce(work: Work, ids: Sequence[JobId], routes: Sequence[Route]) -> None:
    """Those who watch are told of so many at once without their names anyway."""
    for job_id in ids[: NAMED_AT_MOST + 1]:
        work.announce(Topic.JOBS, job_id)
    different = {id(route): route for route in routes}.values()
    for place in {place_of(route.lane_id, route.bound_agent_id) for route in different}:
        work.announce(Topic.WORK, place)

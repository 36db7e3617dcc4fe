"""Many jobs at once: one look at each different route, one statement for all the rows and their stories."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import JobsMade, NewJobs
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY, JOBS_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.live.notices import NAMED_AT_MOST
from agent_console.repository.postgres.queue.putting_in import Route, job_row, put_in
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.routing import routes_of
from agent_console.repository.postgres.work import Work, answers

TYPES_NAMED = 10

# Served by jobs_idempotency_uq.
BY_KEY = text("""
    select id, idempotency_key, type, payload, now() as at from jobs
     where team_id = :team_id and idempotency_key = any (:keys)
""")


@answers(JOBS_CREATE_MANY)
async def create_jobs(work: Work, new: NewJobs) -> JobsMade:
    _require_distinct_keys(new.jobs)
    routes = await routes_of(work, new.jobs)
    rows = [job_row(job, route) for job, route in zip(new.jobs, routes, strict=True)]
    made = await put_in(work, rows)
    ids = [JobId(str(row["id"])) for row in rows]
    if made.ids is not None or not made.made:
        ids = await _with_earlier(work, new.jobs, ids, set(made.ids or ()))
    _announce(work, ids, routes)
    types = sorted({job.type for job in new.jobs})
    metadata: Facts = {
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

"""Completions that more follows from: a signed result is checked, a collection gets its next refresh."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, func, insert, select, update

from agent_console.database.tables import collections, job_events, jobs
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import CollectionId, JobEventId, JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import EventLevel, ParentKind
from agent_console.domain.states import JobStatus
from agent_console.domain.working import Ended, JobDone
from agent_console.repository.operations.working import JOBS_COMPLETE
from agent_console.repository.port import Topic
from agent_console.repository.postgres.identify import refused_credential
from agent_console.repository.postgres.queue.job_changes import no_job
from agent_console.repository.postgres.queue.jobs import enqueue
from agent_console.repository.postgres.queue.lane_book import Routing
from agent_console.repository.postgres.queue.refusing import refusal
from agent_console.repository.postgres.queue.signing import require_signature
from agent_console.repository.postgres.queue.timetable import REFRESH, Timetable, keep_timetable
from agent_console.repository.postgres.queue.turns import TAKE_TURNS, Finish, Taken, Turn, facts_of, taken_of
from agent_console.repository.postgres.registry.collections import locked_collection
from agent_console.repository.postgres.registry.credentials_at_rest import server_keys
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

COLUMNS = tuple(
    jobs.c[name]
    for name in (
        *("id", "type", "payload", "tool", "repository", "required_capabilities", "collection_id", "priority"),
        *("max_attempts", "max_run_seconds", "affinity_key", "connector_id", "bound_agent_id"),
        *("signed", "signing_nonce", "signing_secret_hash"),
    )
)


async def complete_apart(repository: "PostgresRepository", done: JobDone) -> Ended:
    """The completion and everything that follows from it, in one transaction."""

    async def complete(work: Work, done: JobDone) -> Ended:
        job = await _job(work, done.job_id)
        collection = await _collection(work, job.collection_id)
        if job.signed:
            require_signature(
                server_keys(),
                done.job_id,
                done.attempt,
                job.signing_nonce,
                job.signing_secret_hash,
                done.result,
                done.signature,
            )
        taken = await _finish(work, done, signed=job.signed)
        if taken.finish != "ok":
            raise refusal(taken.finish or "", taken.finish_status, done.job_id)
        work.announce(Topic.JOBS, done.job_id)
        if collection is not None:
            await _refresh_again(work, job, collection)
        return Ended(job_id=done.job_id, status=JobStatus(taken.finish_status or ""))

    return await repository.in_one_transaction(JOBS_COMPLETE, complete, done)


async def _job(work: Work, job_id: JobId) -> Row[Any]:
    wanted = select(*COLUMNS).where(jobs.c.team_id == work.caller.team_id, jobs.c.id == job_id)
    if (found := (await work.connection.execute(wanted)).first()) is None:
        raise no_job(job_id)
    return found


async def _collection(work: Work, collection_id: CollectionId | None) -> Row[Any] | None:
    """Locked before its jobs, as everywhere; one that was deleted meanwhile gets no further refresh."""
    if collection_id is None:
        return None
    try:
        return await locked_collection(work, collection_id)
    except NotFound:
        return None


async def _finish(work: Work, done: JobDone, *, signed: bool) -> Taken:
    if work.caller.agent_id is None:
        raise refused_credential()
    finish = Finish.of_done(done, apart=True, signed=signed)
    turn = Turn(work.caller.agent_id, finish=finish)
    facts = facts_of(Routing(work.caller.team_id), [turn], {})
    rows = (await work.connection.exec_driver_sql(TAKE_TURNS, facts)).all()
    return taken_of(rows, 1)[0]


async def _refresh_again(work: Work, job: Row[Any], collection: Row[Any]) -> None:
    """Remember the refresh, and put the next one on the timetable, one interval after this one's end."""
    kept = await work.connection.execute(
        update(collections)
        .where(collections.c.team_id == work.caller.team_id, collections.c.id == collection.id)
        .values(last_refresh_at=func.now())
        .returning(collections, func.now().label("at"))
    )
    timetable = Timetable.of(kept.one())
    work.announce(Topic.COLLECTIONS, collection.id)
    if timetable.interval is None:
        return
    if job.type == REFRESH:
        await keep_timetable(work, timetable, new_rhythm=True)
    elif not await _place_is_taken(work, job):
        await _put_next(work, job, timetable, timetable.interval)
    await work.connection.execute(
        update(jobs)
        .where(_scheduled_of(work, job))
        .values(parent_job_id=job.id, parent_kind=ParentKind.REFRESH.value)
    )


async def _put_next(work: Work, job: Row[Any], timetable: Timetable, interval: timedelta) -> None:
    """What was done is done, even where nothing can follow: its agent may be revoked by now."""
    try:
        await enqueue(work, _next(job, timetable, interval))
    except ConsoleError as refusal:
        words = f"nothing follows on the timetable of its collection: {refusal}"
        await work.connection.execute(
            insert(job_events).values(
                team_id=work.caller.team_id,
                id=JobEventId.new(),
                job_id=job.id,
                level=EventLevel.WARN.value,
                message=words,
                created_by_user_id=work.caller.user_id,
            )
        )


def _next(job: Row[Any], timetable: Timetable, interval: timedelta) -> NewJob:
    """The same again, but for what the collection itself decides by now."""
    return NewJob(
        type=job.type,
        payload=job.payload,
        tool=job.tool,
        repository=job.repository,
        required_capabilities=tuple(job.required_capabilities),
        collection_id=job.collection_id,
        priority=job.priority,
        max_attempts=job.max_attempts,
        max_run_seconds=job.max_run_seconds,
        affinity_key=job.affinity_key,
        connector_id=None if timetable.connector_id is not None else job.connector_id,
        bound_agent_id=None if timetable.bound_agent_id is not None else job.bound_agent_id,
        signed=job.signed,
        scheduled_for=timetable.at + interval,
    )


def _place_of(work: Work, job: Row[Any]) -> Any:
    """Served by jobs_scheduled_uq."""
    return (
        (jobs.c.team_id == work.caller.team_id)
        & (jobs.c.collection_id == job.collection_id)
        & jobs.c.tool.is_not_distinct_from(job.tool)
        & (jobs.c.status == JobStatus.SCHEDULED.value)
    )


def _scheduled_of(work: Work, job: Row[Any]) -> Any:
    return _place_of(work, job) & (jobs.c.type == job.type)


async def _place_is_taken(work: Work, job: Row[Any]) -> bool:
    """jobs_scheduled_uq leaves a tool of a collection one place, whatever the type; no tool, no place."""
    place = _scheduled_of(work, job) if job.tool is None else _place_of(work, job)
    return (await work.connection.execute(select(jobs.c.id).where(place).limit(1))).first() is not None

"""Jobs that are made one at a time: what one caller asks for at the same time goes in with one statement."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sqlalchemy import text

from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, JobId, LaneId
from agent_console.domain.jobs import Job, NewJob
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.fleet import JOB_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.identify import Identify
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.queue.explaining import warnings_for
from agent_console.repository.postgres.queue.gathering import Gatherer
from agent_console.repository.postgres.queue.jobs import job_of
from agent_console.repository.postgres.queue.putting_in import job_row, put_in_each
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.routing import routes_of
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# While the database works on one batch, this process answers another.
CROWD = 12

# Served by jobs_idempotency_uq.
BY_KEY = text("""
    select idempotency_key, id from jobs where team_id = :team_id and idempotency_key = any (:keys)
""")


class Asker(NamedTuple):
    """Whose jobs go in together. Who names an agent, a collection or a connector may have to wait for those who
    are changing it, and only those who name the same wait along."""

    identify: Identify
    bound_agent_id: AgentId | None
    collection_id: CollectionId | None
    connector_id: ConnectorId | None


@dataclass(frozen=True, eq=False)
class Wanted:
    repository: "PostgresRepository"
    new: NewJob


class Creating:
    """What all callers of one process share."""

    def __init__(self) -> None:
        self._gatherer = Gatherer[Asker, Wanted, Job](_make, crowd=CROWD)

    async def make(self, repository: "PostgresRepository", new: NewJob) -> Job:
        asker = Asker(repository.identify, new.bound_agent_id, new.collection_id, new.connector_id)
        wanted = Wanted(repository, new)
        return await self._gatherer.add(asker, wanted, wanted)

    async def close(self) -> None:
        await self._gatherer.close()


@answers_at_own_pace(JOBS_CREATE)
async def create_job(repository: "PostgresRepository", new: NewJob) -> Job:
    return await repository.backend.queue.creating.make(repository, new)


async def _make(asker: Asker, wanted: Sequence[Wanted]) -> list[Job | ConsoleError]:
    async def all_of_them(work: Work, _: NewJob) -> list[Job | ConsoleError]:
        return await make_together(work, wanted)

    return await wanted[0].repository.in_one_transaction(JOBS_CREATE, all_of_them, wanted[0].new)


async def make_together(work: Work, wanted: Sequence[Wanted]) -> list[Job | ConsoleError]:
    """One job, or one refusal, for each. The same key and the same request is the same job."""
    keys = {each.new.idempotency_key for each in wanted} - {None}
    known = await _by_key(work, keys)
    made = await _made_now(work, [each for each in wanted if each.new.idempotency_key not in known])
    if len(made) + len(known) < len(wanted):
        # Somebody was first with a key meanwhile, be it another of these.
        known = await _by_key(work, keys)
    return [made.get(each) or await _made_before(work, each.new, known) for each in wanted]


async def _by_key(work: Work, keys: Collection[str | None]) -> dict[str, UUID]:
    if not keys:
        return {}
    found = await work.connection.execute(BY_KEY, {"team_id": work.caller.team_id, "keys": list(keys)})
    return {row.idempotency_key: row.id for row in found}


async def _made_before(work: Work, new: NewJob, known: dict[str, UUID]) -> Job | ConsoleError:
    found = known.get(new.idempotency_key or "")
    if found is None:
        return Conflict("Another request with this idempotency key was just undone.", hint="Try again.")
    earlier = await job_of(work, JobId.of(found))
    if (earlier.type, earlier.payload) == (new.type, new.payload):
        return earlier
    return Conflict(
        "This idempotency key was used for another job.",
        hint="Use a new key for new work.",
        details={"job_id": str(earlier.id)},
    )


async def _made_now(work: Work, wanted: Sequence[Wanted]) -> dict[Wanted, Job]:
    """Without those whose key was used meanwhile. Each job is an act of its own."""
    routes = await routes_of(work, [each.new for each in wanted])
    rows = [job_row(each.new, route) for each, route in zip(wanted, routes, strict=True)]
    found = await put_in_each(work, rows) if rows else {}
    warnings: dict[LaneId, tuple[str, ...]] = {}
    made: dict[Wanted, Job] = {}
    for each, route, row in zip(wanted, routes, rows, strict=True):
        job_id = JobId(str(row["id"]))
        if (kept := found.get(job_id)) is None:
            continue
        if route.lane_id not in warnings:
            warnings[route.lane_id] = await warnings_for(work, job_id)
        known = {"agent_name": None, "created_by": work.caller.name, "warnings": warnings[route.lane_id]}
        job = made[each] = Job.model_validate({**kept, **known})
        work.announce(Topic.JOBS, job_id)
        if job.status is JobStatus.QUEUED:
            work.announce(Topic.WORK, place_of(route.lane_id, route.bound_agent_id))
    if found:
        at = next(iter(found.values()))["created_at"]
        acts = [(_told(each.new, job), each.repository.place) for each, job in made.items()]
        await audit.append_each(work, acts, at)
    return made


def _told(new: NewJob, job: Job) -> AuditEvent:
    facts: Facts = {
        "type": new.type,
        "priority": new.priority,
        "bound_agent_id": None if new.bound_agent_id is None else str(new.bound_agent_id),
        "collection_id": None if new.collection_id is None else str(new.collection_id),
        "scheduled": job.status is JobStatus.SCHEDULED,
    }
    return AuditEvent(action=JOB_CREATED, resource_type="job", resource_id=str(job.id), metadata=facts)

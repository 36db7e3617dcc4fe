"""Cancelling, reprioritising and rebinding one job, through both repositories."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from agent_console.domain.collections import CollectionAsked, NewCollection
from agent_console.domain.errors import Conflict, Invalid, NotFound
from agent_console.domain.ids import AgentId, JobId
from agent_console.domain.job_acts import JobCancelling, JobRebinding, JobReprioritising, JobRetrying
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob
from agent_console.domain.kinds import StorageKind
from agent_console.domain.records import Request
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, JOBS_LIST, AnyOperation
from agent_console.repository.operations.job_acts import JOBS_CANCEL, JOBS_REBIND, JOBS_REPRIORITISE, JOBS_RETRY
from agent_console.repository.operations.storage import COLLECTIONS_CREATE, COLLECTIONS_GET
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.repository.test_contract_changes import heard_until, next_of
from tests.support.fleet import Fleet
from tests.support.runs import belongs_to_a_run
from tests.support.stories import acts, last_line, lines
from tests.support.taking import taken


async def seen(repository: Repository, job_id: JobId) -> Job:
    return await repository.call(JOBS_GET, JobAsked(job_id=job_id))


@pytest.mark.rule("U001-12", "R003-27", "R000-81", "R003-30", "R003-36", "R003-37", "U001-7")
async def test_a_waiting_job_is_cancelled_in_one_step_and_only_once(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    operator, job_id = await open_repository(OPERATOR), fleet.first_job("queued")
    before = await seen(operator, job_id)

    cancelled = await operator.call(JOBS_CANCEL, JobCancelling(job_id=job_id, reason="not needed"))
    told = lines(fleet)
    again = await operator.call(JOBS_CANCEL, JobCancelling(job_id=job_id, reason="once more"))

    assert cancelled == again
    assert (cancelled.status, cancelled.cancel_reason) == (JobStatus.CANCELLED, "not needed")
    assert cancelled.finished_at is not None
    assert cancelled.updated_at != before.updated_at
    assert cancelled.updated_by_user_id == cancelled.cancel_requested_by_user_id == fleet.user_id(OPERATOR)
    facts = {"from": "queued", "to": "cancelled"}
    assert last_line(fleet, job_id) == ("queued to cancelled: not needed", facts, OPERATOR)
    assert lines(fleet) == told
    assert acts(fleet) == [("job.cancel", str(job_id), facts, "not needed")]
    assert fleet.one("select look_at from jobs where id = %s", job_id) is None


@pytest.mark.rule("R003-27")
async def test_a_cancelled_job_is_never_claimed(repository: Repository, fleet: Fleet) -> None:
    new = NewJob(type="report", payload={}, bound_agent_id=fleet.agent_id("beacon"))
    kept, dropped = [await repository.call(JOBS_CREATE, new) for _ in range(2)]

    await repository.call(JOBS_CANCEL, JobCancelling(job_id=dropped.id))

    jobs = taken(fleet, "beacon")[1]
    assert kept.id in jobs
    assert dropped.id not in jobs


@pytest.mark.rule("R000-85")
async def test_a_cancelled_refresh_is_no_longer_the_collections_next(repository: Repository, fleet: Fleet) -> None:
    new = NewCollection(
        name="photos",
        type=StorageKind.LOCAL,
        bound_agent_id=fleet.agent_id("atlas"),
        auto_refresh=True,
        refresh_interval_hours=6,
    )
    collection = await repository.call(COLLECTIONS_CREATE, new)
    found = fleet.one("select id from jobs where collection_id = %s", collection.id)
    job_id = JobId(str(found))
    changes = repository.changes()
    assert await next_of(changes) == REFETCH

    cancelled = await repository.call(JOBS_CANCEL, JobCancelling(job_id=job_id))

    await heard_until(changes, Change(topic=Topic.COLLECTIONS, id=str(collection.id)))
    await changes.aclose()
    after = await repository.call(COLLECTIONS_GET, CollectionAsked(collection_id=collection.id))
    assert collection.next_refresh_at is not None
    assert (cancelled.status, after.next_refresh_at) == (JobStatus.CANCELLED, None)


@pytest.mark.rule("U001-13", "U001-7")
@pytest.mark.parametrize("status", ["running", "assigned"])
async def test_a_held_job_is_asked_to_stop_and_stays_until_its_agent_has(
    repository: Repository, fleet: Fleet, status: str
) -> None:
    held = await seen(repository, fleet.first_job(status))

    asked = await repository.call(JOBS_CANCEL, JobCancelling(job_id=held.id, reason="wrong month"))
    told = lines(fleet)
    again = await repository.call(JOBS_CANCEL, JobCancelling(job_id=held.id))

    assert asked == again
    assert (asked.status.value, asked.shown_status, asked.cancel_reason) == (status, "cancelling", "wrong month")
    assert (asked.agent_id, asked.lease_expires_at) == (held.agent_id, held.lease_expires_at)
    facts = {"from": status, "to": "cancelling"}
    assert last_line(fleet, held.id) == ("its agent is asked to stop: wrong month", facts, "ana@example.com")
    assert lines(fleet) == told
    assert acts(fleet) == [("job.cancel", str(held.id), facts, "wrong month")]


@pytest.mark.rule("U001-14")
async def test_a_job_asked_to_stop_whose_lease_ends_is_cancelled(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    await repository.call(JOBS_CANCEL, JobCancelling(job_id=job_id))

    fleet.execute("update jobs set lease_expires_at = now(), look_at = now() where id = %s", job_id)
    fleet.execute("select tend_jobs(100)")

    ended = await seen(repository, job_id)
    assert (ended.status, ended.attempt) == (JobStatus.CANCELLED, 1)


@pytest.mark.rule("U001-15", "R003-28", "R003-29", "R000-93")
@pytest.mark.parametrize("status", ["succeeded", "failed", "dead_letter"])
async def test_what_has_ended_cannot_be_cancelled(repository: Repository, fleet: Fleet, status: str) -> None:
    ended = await seen(repository, fleet.first_job(status))

    with pytest.raises(Conflict) as refused:
        await repository.call(JOBS_CANCEL, JobCancelling(job_id=ended.id))

    assert refused.value.details["state"] == status
    assert status in refused.value.message
    assert (await seen(repository, ended.id), acts(fleet)) == (ended, [])


async def test_what_ended_well_although_it_was_asked_to_stop_cannot_be_cancelled(
    repository: Repository, fleet: Fleet
) -> None:
    job_id = fleet.first_job("running")
    await repository.call(JOBS_CANCEL, JobCancelling(job_id=job_id))
    fleet.execute(
        "update jobs set status = 'succeeded', finished_at = now(), look_at = null, lease_expires_at = null,"
        " claimed_by = null where id = %s",
        job_id,
    )
    told = acts(fleet)

    with pytest.raises(Conflict) as refused:
        await repository.call(JOBS_CANCEL, JobCancelling(job_id=job_id))

    assert (refused.value.details["state"], acts(fleet)) == ("succeeded", told)


async def test_two_who_cancel_at_once_are_one_act(repository: Repository, fleet: Fleet) -> None:
    asked = JobCancelling(job_id=fleet.first_job("queued"))

    answers = await asyncio.gather(*(repository.call(JOBS_CANCEL, asked) for _ in range(4)))

    assert {job.status for job in answers} == {JobStatus.CANCELLED}
    assert len(acts(fleet)) == 1


@pytest.mark.rule("R003-4")
async def test_a_higher_priority_is_claimed_first(repository: Repository, fleet: Fleet) -> None:
    new = NewJob(type="report", payload={}, bound_agent_id=fleet.agent_id("beacon"))
    first, second = [await repository.call(JOBS_CREATE, new) for _ in range(2)]
    told = acts(fleet)

    moved = await repository.call(JOBS_REPRIORITISE, JobReprioritising(job_id=second.id, priority=7))
    again = await repository.call(JOBS_REPRIORITISE, JobReprioritising(job_id=second.id, priority=7))

    assert moved == again
    assert moved.priority == 7
    assert last_line(fleet, second.id)[0] == "priority 0 to 7"
    assert acts(fleet)[len(told) :] == [("job.reprioritise", str(second.id), {"from": 0, "to": 7}, None)]
    assert taken(fleet, "beacon", at_most=1)[1] == [second.id]
    assert (await seen(repository, first.id)).status is JobStatus.QUEUED


@pytest.mark.rule("R000-93")
@pytest.mark.parametrize("status", ["assigned", "running", "succeeded", "failed", "dead_letter", "cancelled"])
async def test_only_what_waits_can_be_moved(repository: Repository, fleet: Fleet, status: str) -> None:
    job = await seen(repository, fleet.first_job(status))
    reprioritising = JobReprioritising(job_id=job.id, priority=5)
    rebinding = JobRebinding(job_id=job.id, agent_id=fleet.agent_id("beacon"))

    with pytest.raises(Conflict) as not_moved:
        await repository.call(JOBS_REPRIORITISE, reprioritising)
    with pytest.raises(Conflict) as not_rebound:
        await repository.call(JOBS_REBIND, rebinding)

    assert (not_moved.value.details["state"], not_rebound.value.details["state"]) == (status, status)
    assert (await seen(repository, job.id), acts(fleet)) == (job, [])


async def test_a_rebound_job_changes_its_lane_and_who_gets_it(repository: Repository, fleet: Fleet) -> None:
    beacon = fleet.agent_id("beacon")
    new = NewJob(type="odd_work", payload={}, required_capabilities=("nobody:has:this",))
    job = await repository.call(JOBS_CREATE, new)

    bound = await repository.call(JOBS_REBIND, JobRebinding(job_id=job.id, agent_id=beacon))
    again = await repository.call(JOBS_REBIND, JobRebinding(job_id=job.id, agent_id=beacon))
    lane_bound = fleet.one(
        "select l.bound_agent_id from lanes l join jobs j on j.lane_id = l.id where j.id = %s", job.id
    )
    freed = await repository.call(JOBS_REBIND, JobRebinding(job_id=job.id, unbind=True))
    nobody = taken(fleet, "beacon")[1]
    await repository.call(JOBS_REBIND, JobRebinding(job_id=job.id, agent_id=beacon))

    assert bound == again
    assert (bound.bound_agent_id, lane_bound, freed.bound_agent_id) == (beacon, beacon, None)
    assert [act[2] for act in acts(fleet)[1:3]] == [
        {"from_agent_id": None, "to_agent_id": str(beacon)},
        {"from_agent_id": str(beacon), "to_agent_id": None},
    ]
    assert job.id not in nobody
    assert job.id in taken(fleet, "beacon")[1]


async def test_a_job_is_not_rebound_to_who_will_never_take_it(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("queued")
    fleet.execute("update agents set deleted_at = now() where name = 'beacon'")

    with pytest.raises(Conflict):
        await repository.call(JOBS_REBIND, JobRebinding(job_id=job_id, agent_id=fleet.agent_id("juniper")))
    for gone in (fleet.agent_id("beacon"), AgentId.new()):
        with pytest.raises(NotFound):
            await repository.call(JOBS_REBIND, JobRebinding(job_id=job_id, agent_id=gone))
    for unclear in (JobRebinding(job_id=job_id), JobRebinding(job_id=job_id, agent_id=gone, unbind=True)):
        with pytest.raises(Invalid):
            await repository.call(JOBS_REBIND, unclear)

    assert acts(fleet) == []


async def test_a_collection_or_a_run_decides_who_does_its_jobs(repository: Repository, fleet: Fleet) -> None:
    atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
    of_run = fleet.first_job("queued")
    belongs_to_a_run(fleet, of_run)
    local = NewCollection(name="photos", type=StorageKind.LOCAL, bound_agent_id=atlas)
    collection = await repository.call(COLLECTIONS_CREATE, local)
    scan = await repository.call(JOBS_CREATE, NewJob(type="scan", payload={}, collection_id=collection.id))

    for job_id, why in ((scan.id, "collection"), (of_run, "run")):
        with pytest.raises(Conflict, match=why):
            await repository.call(JOBS_REBIND, JobRebinding(job_id=job_id, agent_id=beacon))

    assert (await seen(repository, scan.id)).bound_agent_id == atlas
    assert (await seen(repository, of_run)).bound_agent_id != beacon


@pytest.mark.rule("U000-35")
async def test_what_is_offered_for_a_job_is_what_would_be_done(repository: Repository, fleet: Fleet) -> None:
    page = await repository.call(JOBS_LIST, JobQuery(limit=200))
    beacon = fleet.agent_id("beacon")
    untouched = {status: [job for job in page.items if job.status is status][-1] for status in JobStatus}
    requests: list[tuple[AnyOperation, Callable[[Job], Request]]] = [
        (JOBS_REPRIORITISE, lambda job: JobReprioritising(job_id=job.id, priority=99)),
        (JOBS_REBIND, lambda job: JobRebinding(job_id=job.id, agent_id=beacon)),
        (JOBS_RETRY, lambda job: JobRetrying(job_id=job.id)),
        (JOBS_CANCEL, lambda job: JobCancelling(job_id=job.id)),
    ]

    wrong = [
        (operation.name, job.status.value)
        for operation, asked in requests
        for job in untouched.values()
        if operation.fits is None
        or operation.fits(job) is not await changes(repository, fleet, operation, asked(job))
    ]

    assert wrong == []
    running = untouched[JobStatus.RUNNING]
    assert running.agent_name == fleet.one("select name from agents where id = %s", running.agent_id)


async def changes(repository: Repository, fleet: Fleet, operation: AnyOperation, asked: Request) -> bool:
    before = len(acts(fleet))
    with suppress(Conflict):
        await repository.call(operation, asked)
    return len(acts(fleet)) > before


@pytest.mark.rule("R003-44", "U000-33")
async def test_unknown_and_other_teams_jobs_are_not_found(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    stranger = await open_repository("admin@other.example", "other")
    job_id = fleet.first_job("queued")

    for missing in (job_id, JobId.new()):
        with pytest.raises(NotFound):
            await stranger.call(JOBS_CANCEL, JobCancelling(job_id=missing))
        with pytest.raises(NotFound):
            await stranger.call(JOBS_REPRIORITISE, JobReprioritising(job_id=missing, priority=1))
        with pytest.raises(NotFound):
            await stranger.call(JOBS_REBIND, JobRebinding(job_id=missing, unbind=True))

    assert fleet.one("select status from jobs where id = %s", job_id) == "queued"

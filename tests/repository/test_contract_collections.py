"""Collections and the one job each has ahead of it, through both repositories."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from agent_console.domain.collections import (
    Collection,
    CollectionAsked,
    CollectionQuery,
    CollectionUpdate,
    NewCollection,
)
from agent_console.domain.connectors import ConnectorAsked, NewConnector
from agent_console.domain.errors import Conflict, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, JobId
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob
from agent_console.domain.kinds import StorageKind
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, JOBS_LIST, AnyOperation
from agent_console.repository.operations.storage import (
    COLLECTIONS_CREATE,
    COLLECTIONS_DELETE,
    COLLECTIONS_GET,
    COLLECTIONS_LIST,
    COLLECTIONS_REFRESH,
    COLLECTIONS_UPDATE,
    CONNECTORS_CREATE,
    CONNECTORS_DELETE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.fleet import Fleet


async def make(repository: Repository, name: str = "photos", **facts: object) -> Collection:
    wanted = {"name": name, "type": "s3", **facts}
    return await repository.call(COLLECTIONS_CREATE, NewCollection.model_validate(wanted))


async def daily(repository: Repository, **facts: object) -> Collection:
    return await make(repository, "photos", tool="photostats", refresh_interval_hours=24, **facts)


async def update(repository: Repository, collection_id: CollectionId, **changes: object) -> Collection:
    wanted = {"collection_id": collection_id, **changes}
    return await repository.call(COLLECTIONS_UPDATE, CollectionUpdate.model_validate(wanted))


async def get(repository: Repository, collection_id: CollectionId) -> Collection:
    return await repository.call(COLLECTIONS_GET, CollectionAsked(collection_id=collection_id))


async def refresh(repository: Repository, collection_id: CollectionId) -> Job:
    return await repository.call(COLLECTIONS_REFRESH, CollectionAsked(collection_id=collection_id))


async def delete(repository: Repository, collection_id: CollectionId) -> Collection:
    return await repository.call(COLLECTIONS_DELETE, CollectionAsked(collection_id=collection_id))


async def jobs_of(repository: Repository, collection_id: CollectionId, *states: JobStatus) -> list[Job]:
    query = JobQuery(collection_id=collection_id, status=states)
    return list((await repository.call(JOBS_LIST, query)).items)


async def the_scheduled(repository: Repository, collection_id: CollectionId) -> Job:
    (job,) = await jobs_of(repository, collection_id, JobStatus.SCHEDULED)
    return job


def audited(fleet: Fleet) -> list[str]:
    return [str(action) for (action,) in fleet.execute("select action from audit_log order by seq")]


def story(fleet: Fleet, job_id: JobId) -> list[tuple[object, ...]]:
    return fleet.execute("select level, message from job_events where job_id = %s order by seq", job_id)


def start(fleet: Fleet, job_id: JobId) -> None:
    fleet.execute(
        "update jobs set status = 'running', agent_id = %s, claimed_by = 'atlas', assigned_at = now(),"
        " started_at = now(), lease_expires_at = now() + interval '1 hour', look_at = now() + interval '1 hour'"
        " where id = %s",
        *(fleet.agent_id("atlas"), job_id),
    )


@pytest.mark.rule("R000-5", "R000-109", "R000-110", "R000-111", "U000-49")
async def test_a_new_collection_refreshes_by_hand_only(repository: Repository, fleet: Fleet) -> None:
    made = await make(repository)

    assert str(made.id).startswith("col_")
    assert (made.auto_refresh, made.refresh_interval_hours, made.bound_agent_id) == (True, None, None)
    assert (made.last_refresh_at, made.next_refresh_at) == (None, None)
    assert (made.created_by, made.updated_by) == ("Ana Costa", "Ana Costa")
    assert await get(repository, made.id) == made
    with pytest.raises(Conflict):
        await make(repository, "pHOTOS")
    assert audited(fleet) == ["collection.create"]


@pytest.mark.rule("R000-114", "R000-115", "R000-116", "R000-117", "R000-118", "R000-122")
async def test_the_kind_of_storage_decides_about_the_agent(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")

    local = await make(repository, "local", type="local", bound_agent_id=atlas)
    share = await make(repository, "share", type="smb")
    bound_share = await make(repository, "bound share", type="smb", bound_agent_id=atlas)
    refused = []
    for kind, agent_id in (("local", None), ("s3", atlas), ("gcs", atlas)):
        with pytest.raises(Invalid) as refusal:
            await make(repository, f"wrong {kind}", type=kind, bound_agent_id=agent_id)
        refused.append(str(refusal.value.details["fields"]))
    with pytest.raises(Invalid):
        await update(repository, local.id, bound_agent_id=None)

    assert (local.bound_agent_id, local.bound_agent) == (atlas, "atlas")
    assert (share.bound_agent_id, bound_share.bound_agent_id) == (None, atlas)
    assert all("bound_agent_id" in fields for fields in refused)
    assert (await refresh(repository, local.id)).bound_agent_id == atlas
    assert (await refresh(repository, bound_share.id)).bound_agent_id == atlas
    assert (await refresh(repository, share.id)).bound_agent_id is None
    assert fleet.one("select count(*) from collections") == 3


async def test_only_a_living_agent_can_be_bound(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now() where name = 'iris'")

    with pytest.raises(Conflict):
        await make(repository, type="local", bound_agent_id=fleet.agent_id("juniper"))
    for gone in (fleet.agent_id("iris"), AgentId.new()):
        with pytest.raises(NotFound):
            await make(repository, type="local", bound_agent_id=gone)

    assert fleet.one("select count(*) from collections") == 0


async def test_a_connector_must_be_here_and_of_the_same_kind(repository: Repository) -> None:
    bucket = await repository.call(CONNECTORS_CREATE, NewConnector(name="bucket", type=StorageKind.S3))
    gone = await repository.call(CONNECTORS_CREATE, NewConnector(name="gone", type=StorageKind.S3))
    await repository.call(CONNECTORS_DELETE, ConnectorAsked(connector_id=gone.id))

    made = await make(repository, connector_id=bucket.id)
    with pytest.raises(Invalid) as refused:
        await make(repository, "other", type="smb", connector_id=bucket.id)
    for missing in (gone.id, ConnectorId.new()):
        with pytest.raises(NotFound):
            await make(repository, "other", connector_id=missing)

    assert (made.connector_id, made.connector) == (bucket.id, "bucket")
    assert "connector_id" in str(refused.value.details["fields"])
    assert (await refresh(repository, made.id)).connector_id == bucket.id


@pytest.mark.rule("R000-119")
async def test_only_auto_refresh_with_an_interval_makes_a_timetable(repository: Repository) -> None:
    both = await make(repository, "both", refresh_interval_hours=24)
    others = [
        await make(repository, "no interval"),
        await make(repository, "not automatic", auto_refresh=False, refresh_interval_hours=24),
        await make(repository, "neither", auto_refresh=False),
    ]

    assert both.next_refresh_at is not None
    assert len(await jobs_of(repository, both.id)) == 1
    for collection in others:
        assert collection.next_refresh_at is None
        assert await jobs_of(repository, collection.id) == []


@pytest.mark.rule("R000-120")
@pytest.mark.parametrize(
    "wrong",
    [
        *({"refresh_interval_hours": 0}, {"refresh_interval_hours": -1}, {"name": " "}, {"name": "x" * 256}),
        *({"tool": "two words"}, {"tool": "x" * 101}, {"location": ""}, {"next_refresh_at": None}),
    ],
)
def test_a_collection_outside_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NewCollection.model_validate({"name": "photos", "type": "s3", **wrong})


@pytest.mark.rule("R000-113")
async def test_the_next_refresh_is_what_its_scheduled_job_says(repository: Repository, fleet: Fleet) -> None:
    made = await daily(repository, type="local", location="/vol", bound_agent_id=fleet.agent_id("atlas"))

    job = await the_scheduled(repository, made.id)

    assert job.scheduled_for == made.next_refresh_at == made.created_at + timedelta(hours=24)
    assert (job.tool, job.payload) == ("photostats", {"location": "/vol"})
    assert job.bound_agent_id == fleet.agent_id("atlas")
    assert job.required_capabilities == ("tool:photostats",)
    assert audited(fleet) == ["collection.create"]


@pytest.mark.rule("U000-30", "R000-113")
async def test_another_interval_moves_the_scheduled_job(repository: Repository, fleet: Fleet) -> None:
    made = await daily(repository)
    before = await the_scheduled(repository, made.id)

    moved = await update(repository, made.id, refresh_interval_hours=6)

    after = await the_scheduled(repository, made.id)
    assert after.id == before.id
    assert after.scheduled_for == moved.next_refresh_at == moved.updated_at + timedelta(hours=6)
    assert "moved" in str(story(fleet, after.id)[-1])
    assert audited(fleet) == ["collection.create", "collection.update"]


async def test_an_interval_counts_from_the_last_refresh_and_never_backwards(
    repository: Repository, fleet: Fleet
) -> None:
    made = await daily(repository)
    fleet.execute("update collections set last_refresh_at = now() - interval '5 hours'")

    later = await update(repository, made.id, refresh_interval_hours=8)
    overdue = await update(repository, made.id, refresh_interval_hours=2)

    assert later.last_refresh_at is not None
    assert later.next_refresh_at == later.last_refresh_at + timedelta(hours=8)
    assert overdue.next_refresh_at == overdue.updated_at + timedelta(minutes=1)


async def test_the_timetable_ends_and_begins_with_auto_refresh(repository: Repository, fleet: Fleet) -> None:
    made = await daily(repository)
    first = await the_scheduled(repository, made.id)

    off = await update(repository, made.id, auto_refresh=False)
    on = await update(repository, made.id, auto_refresh=True)
    manual = await update(repository, made.id, refresh_interval_hours=None)

    assert off.next_refresh_at is None
    assert on.next_refresh_at == on.updated_at + timedelta(hours=24)
    assert (manual.next_refresh_at, manual.refresh_interval_hours) == (None, None)
    cancelled = await jobs_of(repository, made.id)
    assert [job.status for job in cancelled] == [JobStatus.CANCELLED] * 2
    assert story(fleet, first.id)[-1][1] == "cancelled: the collection's timetable has changed"


async def test_what_is_no_matter_of_time_leaves_the_time(repository: Repository, fleet: Fleet) -> None:
    made = await daily(repository)

    renamed = await update(repository, made.id, name="pictures")
    same = await update(repository, made.id, name="pictures", refresh_interval_hours=24)
    retooled = await update(repository, made.id, tool="photo_pairing")

    assert renamed.next_refresh_at == made.next_refresh_at
    assert same == renamed
    assert retooled.next_refresh_at == made.next_refresh_at
    assert (await the_scheduled(repository, made.id)).tool == "photo_pairing"
    assert audited(fleet) == ["collection.create", "collection.update", "collection.update"]


@pytest.mark.rule("U000-29", "R000-112")
async def test_a_refresh_by_hand_takes_the_place_of_the_scheduled_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    made = await daily(admin)
    scheduled = await the_scheduled(admin, made.id)

    now = await refresh(operator, made.id)
    again = await refresh(operator, made.id)

    assert (now.status, now.tool, now.created_by) == (JobStatus.QUEUED, "photostats", "Ole Berg")
    assert again == now
    gone = await admin.call(JOBS_GET, JobAsked(job_id=scheduled.id))
    assert gone.status is JobStatus.CANCELLED
    assert story(fleet, scheduled.id)[-1][1] == "cancelled: refreshed by hand"
    shown = await get(admin, made.id)
    assert (shown.last_refresh_at, shown.next_refresh_at) == (None, None)
    assert audited(fleet) == ["collection.create", "collection.refresh"]


async def test_while_one_refresh_runs_another_can_be_asked_for(repository: Repository, fleet: Fleet) -> None:
    made = await daily(repository)
    running = await refresh(repository, made.id)
    start(fleet, running.id)

    next_one = await refresh(repository, made.id)

    assert next_one.id != running.id


async def test_a_scheduled_job_made_by_hand_stands_in_the_same_place(repository: Repository) -> None:
    made = await make(repository, tool="photostats")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    by_hand = NewJob(type="scan", payload={}, tool="photostats", collection_id=made.id, scheduled_for=tomorrow)
    await repository.call(JOBS_CREATE, by_hand)

    planned = await update(repository, made.id, refresh_interval_hours=3)

    assert (await the_scheduled(repository, made.id)).scheduled_for == planned.next_refresh_at
    with pytest.raises(Conflict):
        await repository.call(JOBS_CREATE, by_hand)


async def test_whatever_happens_at_once_there_is_one_job_ahead(repository: Repository, fleet: Fleet) -> None:
    planned = await make(repository, "planned", tool="photostats")
    by_hand = await make(repository, "by hand")

    await asyncio.gather(*(update(repository, planned.id, refresh_interval_hours=hours) for hours in range(1, 7)))
    scheduled = await jobs_of(repository, planned.id, JobStatus.SCHEDULED)
    await asyncio.gather(*(refresh(repository, made.id) for made in (planned, by_hand) for _ in range(4)))

    assert len(scheduled) == 1
    for made in (planned, by_hand):
        assert len(await jobs_of(repository, made.id, JobStatus.QUEUED)) == 1, made.name
    assert await jobs_of(repository, planned.id, JobStatus.SCHEDULED) == []
    assert audited(fleet).count("collection.refresh") == 2


@pytest.mark.rule("U000-31", "U000-32")
async def test_a_deleted_collection_cancels_what_waits_and_warns_what_runs(
    repository: Repository, fleet: Fleet
) -> None:
    made = await daily(repository)
    running = await refresh(repository, made.id)
    start(fleet, running.id)
    await update(repository, made.id, refresh_interval_hours=12)
    queued = await refresh(repository, made.id)
    await update(repository, made.id, refresh_interval_hours=24)
    scheduled = await the_scheduled(repository, made.id)

    last = await delete(repository, made.id)

    ended = {job.id: job.status for job in await jobs_of(repository, made.id)}
    assert last.name == "photos"
    assert ended[scheduled.id] is ended[queued.id] is JobStatus.CANCELLED
    assert ended[running.id] is JobStatus.RUNNING
    assert story(fleet, running.id)[-1] == ("warn", "collection photos was deleted while this job runs")
    facts = {"name": "photos", "cancelled_jobs": 2, "running_jobs": 1}
    assert fleet.one("select metadata from audit_log where action = 'collection.delete'") == facts
    for gone in (get(repository, made.id), refresh(repository, made.id), delete(repository, made.id)):
        with pytest.raises(NotFound):
            await gone
    assert (await make(repository, "photos")).id != made.id


@pytest.mark.rule("R000-43")
async def test_the_list_is_paged_and_filtered_by_what_it_hangs_on(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)
    bucket = await admin.call(CONNECTORS_CREATE, NewConnector(name="bucket", type=StorageKind.S3))
    made = [
        await make(admin, "a", type="local", bound_agent_id=fleet.agent_id("atlas")),
        await make(admin, "b", type="local", bound_agent_id=fleet.agent_id("beacon")),
        await make(admin, "c", connector_id=bucket.id),
    ]

    first = await viewer.call(COLLECTIONS_LIST, CollectionQuery(limit=2))
    rest = await viewer.call(COLLECTIONS_LIST, CollectionQuery(limit=2, after=first.next))
    of_atlas = await viewer.call(COLLECTIONS_LIST, CollectionQuery(bound_agent_id=fleet.agent_id("atlas")))
    on_bucket = await viewer.call(COLLECTIONS_LIST, CollectionQuery(connector_id=bucket.id))
    local = await viewer.call(COLLECTIONS_LIST, CollectionQuery(type=StorageKind.LOCAL))
    with pytest.raises(Forbidden):
        await refresh(viewer, made[0].id)

    assert [*first.items, *rest.items] == made
    assert list(of_atlas.items) == made[:1]
    assert list(on_bucket.items) == made[2:]
    assert list(local.items) == made[:2]


@pytest.mark.rule("R000-132")
async def test_another_teams_things_answer_like_missing_ones(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin = await open_repository()
    ours = await make(admin)
    bucket = await admin.call(CONNECTORS_CREATE, NewConnector(name="bucket", type=StorageKind.S3))
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    operations: tuple[tuple[AnyOperation, dict[str, object]], ...] = (
        (COLLECTIONS_GET, {}),
        (COLLECTIONS_UPDATE, {"name": "mine"}),
        (COLLECTIONS_DELETE, {}),
        (COLLECTIONS_REFRESH, {}),
    )

    for operation, values in operations:
        said = []
        for collection_id in (ours.id, CollectionId.new()):
            request = operation.request.model_validate({"collection_id": collection_id, **values})
            with pytest.raises(NotFound) as refused:
                await other.call(operation, request)
            said.append(str(refused.value).replace(str(collection_id), ""))
        assert said[0] == said[1], operation.name
    with pytest.raises(NotFound):
        await make(other, connector_id=bucket.id)
    with pytest.raises(NotFound):
        await make(other, type="local", bound_agent_id=fleet.agent_id("atlas"))

    assert (await other.call(COLLECTIONS_LIST, CollectionQuery())).items == ()

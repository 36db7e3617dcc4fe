"""Trying jobs again that ended badly, through both repositories."""

import asyncio

import pytest

from agent_console.domain.collections import CollectionAsked, CollectionUpdate, NewCollection
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobRetrying
from agent_console.domain.jobs import Job, JobAsked, NewJob
from agent_console.domain.kinds import ParentKind, StorageKind
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET
from agent_console.repository.operations.job_acts import JOBS_RETRY
from agent_console.repository.operations.storage import (
    COLLECTIONS_CREATE,
    COLLECTIONS_DELETE,
    COLLECTIONS_UPDATE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.fleet import Fleet
from tests.support.runs import belongs_to_a_run
from tests.support.stories import acts, last_line

ROUTED = {"bound_agent_id", "required_capabilities", "type", "repository", "connector_id", "collection_id"}
COPIED = ROUTED | {"payload", "priority", "tool", "affinity_key", "max_attempts", "max_run_seconds", "signed"}
COPIED |= {"requested_by_user_id"}


async def seen(repository: Repository, job_id: JobId) -> Job:
    return await repository.call(JOBS_GET, JobAsked(job_id=job_id))


async def retry(repository: Repository, job_id: JobId) -> Job:
    return await repository.call(JOBS_RETRY, JobRetrying(job_id=job_id))


def ends_badly(fleet: Fleet, job_id: JobId) -> None:
    fleet.execute(
        "update jobs set status = 'failed', finished_at = now(), look_at = null, attempt = 2 where id = %s", job_id
    )


@pytest.mark.rule("R000-91", "R000-80", "R003-29", "R003-30")
@pytest.mark.parametrize("status", ["failed", "dead_letter", "cancelled"])
async def test_a_retry_is_a_new_job_and_the_old_one_stays(
    open_repository: OpenRepository, fleet: Fleet, status: str
) -> None:
    operator = await open_repository(OPERATOR)
    old = await seen(operator, fleet.first_job(status))

    new = await retry(operator, old.id)

    assert new.id != old.id
    assert (new.status, new.attempt, new.agent_id) == (JobStatus.QUEUED, 1, None)
    assert (new.parent_job_id, new.parent_kind) == (old.id, ParentKind.RETRY)
    assert new.created_by_user_id == fleet.user_id(OPERATOR)
    assert await seen(operator, old.id) == old
    assert last_line(fleet, old.id)[0] == f"retried as {new.id}"
    assert last_line(fleet, new.id) == (f"created as queued: {old.id} once more", {"to": "queued"}, OPERATOR)
    assert acts(fleet) == [("job.retry", str(old.id), {"new_job_id": str(new.id)}, None)]


async def test_everything_that_routes_and_bounds_a_job_is_copied(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", "A" * 43)
    wanted = NewJob(
        type="codex_exec",
        payload={"task": "ü"},
        priority=9,
        required_capabilities=("gpu", "tool:codex"),
        bound_agent_id=fleet.agent_id("atlas"),
        tool="codex",
        repository="org/repo",
        affinity_key="warm",
        max_attempts=7,
        max_run_seconds=60,
        signed=True,
        idempotency_key="once",
        requested_by_user_id=fleet.user_id(OPERATOR),
    )
    old = await repository.call(JOBS_CREATE, wanted)
    ends_badly(fleet, old.id)

    new = await retry(repository, old.id)

    assert new.model_dump(include=COPIED) == old.model_dump(include=COPIED)
    assert (old.max_run_seconds, old.signed) == (60, True)
    kept = "select lane_id, idempotency_key, signing_nonce from jobs where id = %s"
    (lane, key, nonce), (new_lane, new_key, new_nonce) = (fleet.execute(kept, job.id)[0] for job in (old, new))
    assert (new_lane, key, new_key) == (lane, "once", None)
    assert None not in (nonce, new_nonce)
    assert new_nonce != nonce


@pytest.mark.rule("R000-93", "R003-28")
@pytest.mark.parametrize("status", ["scheduled", "queued", "assigned", "running", "succeeded"])
async def test_nothing_else_can_be_retried(repository: Repository, fleet: Fleet, status: str) -> None:
    job_id = fleet.first_job(status)

    with pytest.raises(Conflict) as refused:
        await retry(repository, job_id)

    assert refused.value.details["state"] == status
    assert (fleet.one("select count(*) from jobs"), acts(fleet)) == (25, [])


async def test_what_was_retried_is_not_retried_twice(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("dead_letter")

    answers = await asyncio.gather(*(retry(repository, job_id) for _ in range(4)), return_exceptions=True)

    made = [answer for answer in answers if isinstance(answer, Job)]
    refused = [answer for answer in answers if isinstance(answer, Conflict)]
    assert (len(made), len(refused)) == (1, 3)
    assert {conflict.details["job_id"] for conflict in refused} == {str(made[0].id)}
    assert fleet.one("select count(*) from jobs") == 26


async def test_a_retry_goes_where_its_collection_points_now(repository: Repository, fleet: Fleet) -> None:
    atlas, cartographer = fleet.agent_id("atlas"), fleet.agent_id("cartographer")
    local = NewCollection(name="photos", type=StorageKind.LOCAL, bound_agent_id=atlas)
    collection = await repository.call(COLLECTIONS_CREATE, local)
    scan = NewJob(type="scan", payload={}, collection_id=collection.id)
    old, orphan = [await repository.call(JOBS_CREATE, scan) for _ in range(2)]
    ends_badly(fleet, old.id)
    ends_badly(fleet, orphan.id)
    moved = CollectionUpdate(collection_id=collection.id, bound_agent_id=cartographer)
    await repository.call(COLLECTIONS_UPDATE, moved)

    new = await retry(repository, old.id)
    await repository.call(COLLECTIONS_DELETE, CollectionAsked(collection_id=collection.id))

    lane = "select l.bound_agent_id from lanes l join jobs j on j.lane_id = l.id where j.id = %s"
    assert (old.bound_agent_id, new.bound_agent_id, fleet.one(lane, new.id)) == (atlas, cartographer, cartographer)
    with pytest.raises(Conflict, match="collection"):
        await retry(repository, orphan.id)


async def test_a_retry_that_nobody_could_ever_take_is_refused(repository: Repository, fleet: Fleet) -> None:
    of_run = fleet.first_job("failed")
    belongs_to_a_run(fleet, of_run)
    bound = NewJob(type="scan", payload={}, bound_agent_id=fleet.agent_id("beacon"))
    old = await repository.call(JOBS_CREATE, bound)
    ends_badly(fleet, old.id)
    before = fleet.one("select count(*) from jobs")

    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'lost' where name = 'beacon'")
    with pytest.raises(Conflict, match="revoked"):
        await retry(repository, old.id)
    fleet.execute("update agents set deleted_at = now() where name = 'beacon'")
    with pytest.raises(Conflict, match="deleted"):
        await retry(repository, old.id)
    with pytest.raises(Conflict, match="run"):
        await retry(repository, of_run)
    with pytest.raises(NotFound):
        await retry(repository, JobId.new())

    assert fleet.one("select count(*) from jobs") == before

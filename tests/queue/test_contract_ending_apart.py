"""Completions that more follows from: signed results, and collections that are refreshed on a timetable."""

import hashlib
import hmac
import json
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from agent_console.domain.collections import Collection, NewCollection
from agent_console.domain.errors import BadRequest
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import Job, JobAsked
from agent_console.domain.kinds import ParentKind
from agent_console.domain.redact import REDACTED
from agent_console.domain.states import JobStatus
from agent_console.domain.working import Assignment, ClaimWanted, JobDone
from agent_console.repository.operations import JOBS_GET
from agent_console.repository.operations.storage import COLLECTIONS_CREATE
from agent_console.repository.operations.working import JOBS_COMPLETE
from agent_console.repository.postgres.repository import open_direct
from tests.queue.crew import Crew, Row, claim, take_running

RESULT = {"files": [1, 2], "größe": "7 €", "a": {"z": None, "b": 1.5}}


def signature(secret: str | None, result: object) -> str:
    """As the documentation tells agents to make it."""
    assert secret is not None
    words = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(secret.encode(), words.encode(), hashlib.sha256).hexdigest()


def done(job: Job | Assignment, attempt: int = 1, **facts: object) -> JobDone:
    return JobDone.model_validate({"job_id": job.id, "attempt": attempt} | facts)


@pytest.mark.rule("R000-74")
async def test_a_signed_result_is_taken_with_the_secret_of_its_attempt_alone(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made, other = await crew.enqueue(signed=True, priority=1), await crew.enqueue(signed=True)
    job = await take_running(atlas)
    before = crew.row(made.id)

    refusals = []
    for given in (
        None,
        signature("0" * 64, RESULT),
        signature(job.signing_secret, RESULT | {"files": []}),
    ):
        with pytest.raises(BadRequest) as refused:
            await atlas.call(JOBS_COMPLETE, done(made, result=RESULT, signature=given))
        refusals.append(refused.value.details["field"])
    left = crew.row(made.id)
    ended = await atlas.call(
        JOBS_COMPLETE, done(made, result=RESULT, signature=signature(job.signing_secret, RESULT))
    )

    assert refusals == ["signature"] * 3
    assert left == before
    assert ended.status is JobStatus.SUCCEEDED
    (kept,) = crew.rows("select result, signature from job_results")
    assert kept == {"result": RESULT, "signature": signature(job.signing_secret, RESULT)}
    hashed = hashlib.sha256((job.signing_secret or "").encode()).hexdigest()
    assert before["signing_secret_hash"] == hashed
    assert crew.status(other.id) == "queued"


@pytest.mark.rule("R000-74", "U001-21")
async def test_a_result_is_kept_without_its_secrets_unless_it_is_what_was_signed(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")
    atlas, result = await crew.agent("atlas"), {"password": "xyzzy", "found": ["token=abc", 7]}
    signed, plain = await crew.enqueue(signed=True, priority=1), await crew.enqueue()
    job = await take_running(atlas)
    await take_running(atlas)
    proof = signature(job.signing_secret, result)

    await atlas.call(JOBS_COMPLETE, done(signed, result=result, signature=proof, artifacts_path="s3://k:x@b/1"))
    await atlas.call(JOBS_COMPLETE, done(plain, result=result, signature=proof, artifacts_path="s3://k:x@b/1"))

    kept = {row["job_id"]: row["result"] for row in crew.rows("select job_id, result from job_results")}
    assert kept == {
        signed.id: result,
        plain.id: {"password": REDACTED, "found": [f"token={REDACTED}", 7]},
    }
    assert {crew.row(made.id)["artifacts_path"] for made in (signed, plain)} == {f"s3://k:{REDACTED}@b/1"}


@pytest.mark.rule("R000-74")
async def test_every_attempt_has_a_secret_of_its_own(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue(signed=True)
    first = await take_running(atlas)
    crew.time_passes(121)
    await claim(beacon)
    crew.time_passes(34)
    second = await take_running(beacon)

    with pytest.raises(BadRequest):
        await beacon.call(
            JOBS_COMPLETE, done(made, 2, result=RESULT, signature=signature(first.signing_secret, RESULT))
        )
    ended = await beacon.call(
        JOBS_COMPLETE, done(made, 2, result=RESULT, signature=signature(second.signing_secret, RESULT))
    )

    assert first.signing_secret != second.signing_secret
    assert ended.status is JobStatus.SUCCEEDED


async def test_a_job_nobody_asked_to_sign_has_no_secret(crew: Crew) -> None:
    await crew.enqueue()

    job = await take_running(await crew.agent("atlas"))

    assert job.signing_secret is None


async def test_a_signed_result_that_is_refused_brings_no_other_job(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 3 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    made, waiting = await crew.enqueue(signed=True, priority=1), await crew.enqueue()
    job = await take_running(atlas)

    with pytest.raises(BadRequest):
        await atlas.call(JOBS_COMPLETE, done(made, result=RESULT, claim_next=ClaimWanted()))
    left = crew.status(waiting.id)
    right = signature(job.signing_secret, RESULT)
    ended = await atlas.call(JOBS_COMPLETE, done(made, result=RESULT, signature=right, claim_next=ClaimWanted()))

    assert left == "queued"
    assert ended.next is not None
    assert [job.id for job in ended.next.jobs] == [waiting.id]


async def make_collection(crew: Crew, **facts: object) -> Collection:
    wanted = {"name": "photos", "type": "local", "tool": "photostats", "bound_agent_id": crew.id_of("atlas")}
    async with open_direct(crew.fleet.working, user="ana@example.com") as admin:
        return await admin.call(COLLECTIONS_CREATE, NewCollection.model_validate(wanted | facts))


def scheduled(crew: Crew) -> list[Row]:
    return crew.rows("select * from jobs where status = 'scheduled'")


@pytest.mark.rule("R000-92", "R000-149", "R000-150", "R000-73")
async def test_a_completed_refresh_schedules_exactly_one_more_an_interval_later(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    collection = await make_collection(crew, refresh_interval_hours=6)
    crew.time_passes(6 * 3600 + 1)
    job = await take_running(atlas)

    ended = await atlas.call(JOBS_COMPLETE, done(job, result={"files": 7}))

    completed = crew.row(job.id)
    (following,) = scheduled(crew)
    assert ended.status is JobStatus.SUCCEEDED
    assert following["scheduled_for"] == _time(completed["finished_at"]) + timedelta(hours=6)
    same = ("team_id", "collection_id", "tool", "type", "required_capabilities", "bound_agent_id", "payload")
    assert {name: following[name] for name in same} == {name: completed[name] for name in same}
    assert following["collection_id"] == collection.id
    shown = await crew.operator.call(JOBS_GET, _asked(following))
    assert (shown.parent_job_id, shown.parent_kind) == (job.id, ParentKind.REFRESH)


@pytest.mark.rule("R000-151")
@pytest.mark.parametrize("facts", [{"auto_refresh": False, "refresh_interval_hours": 6}, {"auto_refresh": True}])
async def test_without_a_timetable_nothing_follows(crew: Crew, facts: dict[str, object]) -> None:
    atlas = await crew.agent("atlas")
    collection = await make_collection(crew, **facts)
    await crew.enqueue("collection_refresh", collection_id=collection.id, tool="photostats")
    job = await take_running(atlas)

    await atlas.call(JOBS_COMPLETE, done(job))

    assert (crew.status(job.id), scheduled(crew)) == ("succeeded", [])
    refreshed = crew.fleet.one("select last_refresh_at from collections")
    assert refreshed == crew.row(job.id)["finished_at"]


async def test_a_refresh_of_a_collection_that_is_gone_still_ends(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    await make_collection(crew, refresh_interval_hours=6)
    crew.time_passes(6 * 3600 + 1)
    job = await take_running(atlas)
    crew.fleet.execute("update collections set deleted_at = now()")

    ended = await atlas.call(JOBS_COMPLETE, done(job, claim_next=ClaimWanted()))

    assert (ended.status, scheduled(crew)) == (JobStatus.SUCCEEDED, [])
    assert ended.next is not None
    assert ended.next.reason == "nothing_queued"


async def test_other_work_with_the_tool_of_a_collection_ends_although_its_place_on_the_timetable_is_taken(
    crew: Crew,
) -> None:
    atlas = await crew.agent("atlas")
    collection = await make_collection(crew, refresh_interval_hours=6)
    (refresh,) = scheduled(crew)
    await crew.enqueue("report", collection_id=collection.id, tool="photostats")
    job = await take_running(atlas)

    ended = await atlas.call(JOBS_COMPLETE, done(job))

    assert ended.status is JobStatus.SUCCEEDED
    assert [row["id"] for row in scheduled(crew)] == [refresh["id"]]


async def test_what_follows_is_asked_for_as_the_first_was(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    collection = await make_collection(crew, tool=None, refresh_interval_hours=6)
    facts = {"signed": True, "max_run_seconds": 77, "affinity_key": "near"}
    await crew.enqueue("report", collection_id=collection.id, **facts)
    job = await take_running(atlas)

    await atlas.call(JOBS_COMPLETE, done(job, result={}, signature=signature(job.signing_secret, {})))

    (following,) = [row for row in scheduled(crew) if row["type"] == "report"]
    assert {name: following[name] for name in facts} == facts


async def test_work_that_nothing_can_follow_ends_all_the_same_and_its_story_says_why(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    collection = await make_collection(crew, tool=None, refresh_interval_hours=6)
    await crew.enqueue("report", collection_id=collection.id)
    job = await take_running(atlas)
    crew.fleet.execute("update collections set bound_agent_id = %s", crew.id_of("beacon"))
    crew.fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'beacon'")

    ended = await atlas.call(JOBS_COMPLETE, done(job))

    assert ended.status is JobStatus.SUCCEEDED
    assert [row for row in scheduled(crew) if row["type"] == "report"] == []
    last = crew.events(job.id)[-1]
    assert last["level"] == "warn"
    assert str(last["message"]).startswith("nothing follows on the timetable of its collection: Agent agt_")


def _time(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value


def _asked(row: Row) -> JobAsked:
    return JobAsked(job_id=JobId.of(UUID(str(row["id"]))))

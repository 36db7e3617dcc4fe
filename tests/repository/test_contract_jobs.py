"""Jobs, through both repositories."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import Conflict, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, JobId
from agent_console.domain.jobs import JobAsked, JobQuery, NewJob
from agent_console.domain.records import Nothing
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, JOBS_LIST, QUEUE_DEPTH
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.fleet import Fleet

REPORT = NewJob(type="report", payload={"month": "2026-10"}, required_capabilities=("tool:report",))


@pytest.mark.rule("U003-1", "R000-3", "R003-40", "R003-41", "R003-42", "R000-76", "R003-5", "R003-6", "R000-68")
async def test_a_new_job_is_queued_with_its_defaults(repository: Repository, fleet: Fleet) -> None:
    made = await repository.call(JOBS_CREATE, REPORT)

    assert made == await repository.call(JOBS_GET, JobAsked(job_id=made.id))
    assert str(made.id).startswith("job_")
    assert made.status is JobStatus.QUEUED
    assert (made.priority, made.attempt, made.max_attempts) == (0, 1, 3)
    assert made.payload == {"month": "2026-10"}
    assert made.required_capabilities == ("tool:report",)
    assert made.created_by_user_id == fleet.user_id("ana@example.com")
    assert made.agent_id is None


@pytest.mark.rule("R003-2", "R003-4", "R003-7", "R003-8", "R000-67")
async def test_everything_asked_for_is_kept(repository: Repository, fleet: Fleet) -> None:
    wanted = NewJob(
        type="codex_exec",
        payload={"deep": {"er": [1, 2.5, None, True, "ü"]}},
        priority=10,
        required_capabilities=(" tool:codex ", "tool:codex", "gpu"),
        tool="codex",
        repository="org/repo",
        affinity_key="warm-cache",
        max_attempts=5,
        requested_by_user_id=fleet.user_id(VIEWER),
    )

    made = await repository.call(JOBS_CREATE, wanted)

    kept = made.model_dump(include=set(NewJob.model_fields) - {"idempotency_key"})
    asked = wanted.model_dump(exclude={"idempotency_key"}) | {"required_capabilities": ("gpu", "tool:codex")}
    assert kept == asked


@pytest.mark.rule("R000-72", "R000-75")
async def test_a_job_for_later_is_scheduled(repository: Repository) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    later = await repository.call(JOBS_CREATE, NewJob(type="report", payload={}, scheduled_for=tomorrow))
    past = await repository.call(
        JOBS_CREATE, NewJob(type="report", payload={}, scheduled_for=tomorrow - timedelta(days=2))
    )

    assert later.status is JobStatus.SCHEDULED
    assert past.status is JobStatus.QUEUED


@pytest.mark.rule("R002-78", "R002-79", "R002-83", "R002-84")
async def test_creating_writes_one_audit_row_without_content(repository: Repository, fleet: Fleet) -> None:
    made = await repository.call(JOBS_CREATE, NewJob(type="report", payload={"secret": "MARKER"}))

    rows = fleet.execute(
        "select actor_user_id, actor_label, action, resource_id, metadata::text, octet_length(event_hash)"
        " from audit_log"
    )
    assert len(rows) == 1
    actor, label, action, resource, metadata, hash_length = rows[0]
    assert actor == fleet.user_id("ana@example.com")
    assert (label, action, resource, hash_length) == ("Ana Costa", "job.create", str(made.id), 32)
    assert "MARKER" not in str(metadata)
    assert fleet.one("select count(*) from audit_log l where l::text like '%%MARKER%%'") == 0


async def test_creating_tells_the_jobs_story(repository: Repository, fleet: Fleet) -> None:
    made = await repository.call(JOBS_CREATE, REPORT)

    assert fleet.execute("select level, message from job_events where job_id = %s", made.id) == [
        ("info", "created as queued")
    ]


@pytest.mark.rule("U003-2", "U000-34")
async def test_the_list_is_newest_first_and_filtered(repository: Repository, fleet: Fleet) -> None:
    everything = await repository.call(JOBS_LIST, JobQuery())
    waiting = await repository.call(JOBS_LIST, JobQuery(status=(JobStatus.QUEUED, JobStatus.SCHEDULED)))
    of_atlas = await repository.call(JOBS_LIST, JobQuery(agent_id=fleet.agent_id("atlas")))
    crawls = await repository.call(JOBS_LIST, JobQuery(type="crawl", status=(JobStatus.FAILED,)))
    by_tool = await repository.call(JOBS_LIST, JobQuery(tool="deploy"))

    ids = [job.id for job in everything.items]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 25
    assert {job.status for job in waiting.items} == {JobStatus.QUEUED, JobStatus.SCHEDULED}
    assert [job.id for job in waiting.items] == [
        job.id for job in everything.items if job.status in (JobStatus.QUEUED, JobStatus.SCHEDULED)
    ]
    assert {job.agent_name for job in of_atlas.items} == {"atlas"}
    assert [job.error_message for job in crawls.items] == ["robots.txt forbids this path"]
    assert [job.status for job in by_tool.items] == [JobStatus.DEAD_LETTER]


@pytest.mark.parametrize("status", [(), (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.SUCCEEDED)])
async def test_pages_have_no_gap_and_no_repeat_while_jobs_arrive(
    repository: Repository, fleet: Fleet, status: tuple[JobStatus, ...]
) -> None:
    whole = [job.id for job in (await repository.call(JOBS_LIST, JobQuery(status=status))).items]
    paged: list[JobId] = []
    after: str | None = None

    while True:
        page = await repository.call(JOBS_LIST, JobQuery(status=status, limit=4, after=after))
        paged += [job.id for job in page.items]
        fleet.add_jobs(2, since=f"2101-01-{len(paged) + 1:02}")
        after = page.next
        if after is None:
            break

    assert paged == whole


@pytest.mark.rule("R002-55")
async def test_the_american_spelling_is_understood(repository: Repository) -> None:
    query = JobQuery.model_validate({"status": ["canceled"]})

    found = await repository.call(JOBS_LIST, query)

    assert [job.status for job in found.items] == [JobStatus.CANCELLED]


async def test_the_same_key_is_the_same_job(repository: Repository) -> None:
    once = NewJob(type="report", payload={"n": 1}, idempotency_key="nightly-1")

    first = await repository.call(JOBS_CREATE, once)
    again = await repository.call(JOBS_CREATE, once)

    assert again.id == first.id
    with pytest.raises(Conflict) as refused:
        await repository.call(JOBS_CREATE, NewJob(type="report", payload={"n": 2}, idempotency_key="nightly-1"))
    assert refused.value.details["job_id"] == str(first.id)


async def test_the_same_key_at_the_same_time_is_one_job(repository: Repository, fleet: Fleet) -> None:
    once = NewJob(type="report", payload={}, idempotency_key="race")

    made = await asyncio.gather(*(repository.call(JOBS_CREATE, once) for _ in range(6)))

    assert len({job.id for job in made}) == 1
    assert fleet.one("select count(*) from jobs where idempotency_key = 'race'") == 1
    assert fleet.one("select count(*) from audit_log") == 1


async def test_first_jobs_of_one_lane_at_the_same_time_share_it(repository: Repository, fleet: Fleet) -> None:
    new = NewJob(type="brand_new", payload={}, required_capabilities=("b", "a"))

    await asyncio.gather(*(repository.call(JOBS_CREATE, new) for _ in range(6)))

    assert fleet.one("select count(*) from lanes where job_type = 'brand_new'") == 1


@pytest.mark.rule("R000-66", "R000-132")
async def test_a_job_of_a_local_collection_is_bound_to_its_agent(repository: Repository, fleet: Fleet) -> None:
    collection_id, atlas = CollectionId.new(), fleet.agent_id("atlas")
    fleet.execute(
        "insert into collections (team_id, id, name, type, bound_agent_id, created_by_user_id)"
        " values (%s, %s, 'photos', 'local', %s, %s)",
        *(fleet.team_id(), collection_id, atlas, fleet.user_id("ana@example.com")),
    )

    made = await repository.call(JOBS_CREATE, NewJob(type="scan", payload={}, collection_id=collection_id))

    assert (made.bound_agent_id, made.collection_id) == (atlas, collection_id)
    other = NewJob(type="scan", payload={}, collection_id=collection_id, bound_agent_id=fleet.agent_id("beacon"))
    with pytest.raises(Conflict):
        await repository.call(JOBS_CREATE, other)


@pytest.mark.parametrize(
    "missing",
    [
        {"bound_agent_id": AgentId.new()},
        {"collection_id": CollectionId.new()},
        {"connector_id": ConnectorId.new()},
    ],
)
async def test_what_a_job_refers_to_must_exist(repository: Repository, missing: dict[str, object]) -> None:
    with pytest.raises(NotFound):
        await repository.call(JOBS_CREATE, NewJob.model_validate({"type": "x", "payload": {}, **missing}))


async def test_a_revoked_agent_gets_no_new_bound_job(repository: Repository, fleet: Fleet) -> None:
    for_juniper = NewJob(type="x", payload={}, bound_agent_id=fleet.agent_id("juniper"))

    with pytest.raises(Conflict):
        await repository.call(JOBS_CREATE, for_juniper)


@pytest.mark.rule("R003-44")
async def test_an_unknown_job_is_not_found(repository: Repository) -> None:
    with pytest.raises(NotFound):
        await repository.call(JOBS_GET, JobAsked(job_id=JobId.new()))


async def test_operators_may_create_and_viewers_may_not(open_repository: OpenRepository, fleet: Fleet) -> None:
    operator, viewer = await open_repository(OPERATOR), await open_repository(VIEWER)

    made = await operator.call(JOBS_CREATE, REPORT)
    with pytest.raises(Forbidden) as refused:
        await viewer.call(JOBS_CREATE, REPORT)

    assert made.created_by == "Ole Berg"
    assert refused.value.details["permission"] == "work_queue"
    assert (await viewer.call(JOBS_GET, JobAsked(job_id=made.id))).id == made.id
    assert fleet.one("select count(*) from jobs") == 26


async def test_another_teams_jobs_stay_unseen(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    job_id = fleet.first_job("queued")

    with pytest.raises(NotFound):
        await other.call(JOBS_GET, JobAsked(job_id=job_id))
    bound = NewJob(type="x", payload={}, bound_agent_id=fleet.agent_id("atlas"))
    with pytest.raises(NotFound):
        await other.call(JOBS_CREATE, bound)

    assert (await other.call(JOBS_LIST, JobQuery())).items == ()


@pytest.mark.parametrize("text", ["nul \x00 character", "lone surrogate \ud800"])
async def test_text_that_cannot_be_stored_is_refused_and_changes_nothing(
    repository: Repository, fleet: Fleet, text: str
) -> None:
    with pytest.raises(Invalid):
        await repository.call(JOBS_CREATE, NewJob.model_construct(type="x", payload={"text": text}))

    assert fleet.one("select count(*) from jobs") == 25


async def test_the_depth_is_exact_however_deep(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(10_050)

    depth = await repository.call(QUEUE_DEPTH, Nothing())

    counts = {item.status: (item.count, item.capped) for item in depth.depths}
    assert counts[JobStatus.QUEUED] == (10_056, False)
    assert counts[JobStatus.RUNNING] == (5, False)
    assert depth.oldest_queued_at is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "re\0port"),
        ("payload", {"a": ["\0"]}),
        ("payload", {"a": float("inf")}),
        ("idempotency_key", "\ud800"),
    ],
)
def test_what_can_not_be_kept_is_refused_by_the_name_of_its_field(field: str, value: object) -> None:
    given: dict[str, object] = {"type": "report", "payload": {}} | {field: value}

    with pytest.raises(ValidationError) as caught:
        NewJob.model_validate(given)

    assert [error["loc"][0] for error in caught.value.errors()] == [field]

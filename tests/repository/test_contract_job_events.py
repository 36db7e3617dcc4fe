"""The story of a job, through both repositories."""

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import NotFound
from agent_console.domain.ids import JobEventId, JobId
from agent_console.domain.job_acts import JobCancelling
from agent_console.domain.job_events import JobEvent, JobEventQuery
from agent_console.domain.kinds import EventLevel
from agent_console.repository.operations.job_acts import JOBS_CANCEL, JOBS_EVENTS
from agent_console.repository.port import Repository
from tests.repository.conftest import OpenRepository
from tests.support.fleet import Fleet


def add_lines(fleet: Fleet, job_id: JobId, count: int, level: str = "info") -> None:
    """All with the same time, and with ids in no order."""
    for n in range(count):
        fleet.execute(
            "insert into job_events (team_id, id, job_id, level, message, payload, created_at)"
            " values (%s, %s, %s, %s, %s, '{\"n\": 1}', '2026-01-01Z')",
            *(fleet.team_id(), JobEventId.new(), job_id, level, f"line {n}"),
        )


async def followed(repository: Repository, query: JobEventQuery) -> list[JobEvent]:
    told: list[JobEvent] = []
    while True:
        page = await repository.call(JOBS_EVENTS, query)
        told += page.items
        if page.next is None:
            return told
        query = query.model_copy(update={"after_seq": int(page.next)})


@pytest.mark.rule("U001-6", "R001-17", "R001-18", "R001-23")
async def test_a_story_is_told_oldest_first_and_page_by_page(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("queued")
    add_lines(fleet, job_id, 7)
    await repository.call(JOBS_CANCEL, JobCancelling(job_id=job_id, reason="enough"))

    whole = await repository.call(JOBS_EVENTS, JobEventQuery(job_id=job_id))
    paged = await followed(repository, JobEventQuery(job_id=job_id, limit=2))

    assert (tuple(paged), whole.next) == (whole.items, None)
    assert [event.message for event in whole.items] == [
        "created as queued",
        *(f"line {n}" for n in range(7)),
        "queued to cancelled: enough",
    ]
    last = whole.items[-1]
    assert (last.level, last.created_by, last.attempt) == (EventLevel.INFO, "Ana Costa", 1)
    assert last.payload == {"from": "queued", "to": "cancelled"}


@pytest.mark.rule("U001-6")
async def test_who_follows_a_story_gets_each_new_line_once(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    seen = await followed(repository, JobEventQuery(job_id=job_id))

    for _ in range(3):
        add_lines(fleet, job_id, 2)
        seen += await followed(repository, JobEventQuery(job_id=job_id, after_seq=seen[-1].seq))

    kept = fleet.execute("select seq from job_events where job_id = %s order by seq", job_id)
    assert [event.seq for event in seen] == [seq for (seq,) in kept]
    assert await followed(repository, JobEventQuery(job_id=job_id, after_seq=seen[-1].seq)) == []


async def test_a_story_is_read_from_its_end(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    add_lines(fleet, job_id, 6)
    whole = await followed(repository, JobEventQuery(job_id=job_id))

    last = await repository.call(JOBS_EVENTS, JobEventQuery(job_id=job_id, newest=True, limit=4))
    before = int(last.next or "")
    rest = await repository.call(JOBS_EVENTS, JobEventQuery(job_id=job_id, newest=True, before_seq=before))

    assert [*last.items, *rest.items] == whole[::-1]
    assert rest.next is None


async def test_a_level_finds_itself_and_what_is_worse(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    for level in EventLevel:
        add_lines(fleet, job_id, 1, level.value)

    found = {level: await followed(repository, JobEventQuery(job_id=job_id, level=level)) for level in EventLevel}

    assert [event.level for event in found[EventLevel.WARN]] == [EventLevel.WARN, EventLevel.ERROR]
    assert [event.level for event in found[EventLevel.ERROR]] == [EventLevel.ERROR]
    assert len(found[EventLevel.INFO]) == 4


@pytest.mark.rule("U001-6")
@pytest.mark.parametrize("limit", [0, 501])
def test_a_page_has_bounds(limit: int) -> None:
    assert JobEventQuery(job_id=JobId.new()).limit == 200
    assert JobEventQuery(job_id=JobId.new(), limit=500).limit == 500
    with pytest.raises(ValidationError):
        JobEventQuery(job_id=JobId.new(), limit=limit)


@pytest.mark.rule("R001-18", "U000-33")
async def test_the_story_of_a_job_that_is_not_ours_is_not_found(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    stranger = await open_repository("admin@other.example", "other")

    for job_id in (fleet.first_job("queued"), JobId.new()):
        with pytest.raises(NotFound):
            await stranger.call(JOBS_EVENTS, JobEventQuery(job_id=job_id))

"""Pausing the queue and letting it go on, through both repositories."""

import asyncio
from datetime import datetime

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import Forbidden
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import JobQuery, NewJob
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import QueuePausing
from agent_console.domain.records import Nothing, shown_time
from agent_console.domain.states import JOB_HELD, JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_LIST, ME, POOL_STATUS, QUEUE_DEPTH
from agent_console.repository.operations.pausing import QUEUE_PAUSE, QUEUE_RESUME
from agent_console.repository.port import Repository, Topic
from agent_console.repository.postgres.queue import pausing
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.fleet import Fleet
from tests.support.stories import acts, last_line
from tests.support.taking import taken

DRAIN = QueuePausing(mode=PauseMode.DRAIN, reason="database moves at 04:00")
QUIESCE = QueuePausing(mode=PauseMode.QUIESCE, reason="the deploy went wrong")
HELD = JobQuery(status=tuple(sorted(JOB_HELD)), limit=200)


async def bound_job(repository: Repository, fleet: Fleet) -> JobId:
    new = NewJob(type="report", payload={}, bound_agent_id=fleet.agent_id("beacon"))
    return (await repository.call(JOBS_CREATE, new)).id


@pytest.mark.rule("U001-18")
async def test_a_drained_queue_gives_nothing_out_and_lets_what_runs_finish(
    repository: Repository, fleet: Fleet
) -> None:
    job_id = await bound_job(repository, fleet)
    running = await repository.call(JOBS_LIST, HELD)

    paused = await repository.call(QUEUE_PAUSE, DRAIN)
    standing, jobs = taken(fleet, "beacon")
    still = await repository.call(JOBS_LIST, HELD)
    resumed = await repository.call(QUEUE_RESUME, Nothing())

    assert (standing, jobs) == ("paused", [])
    assert (still, paused.released) == (running, 0)
    assert resumed.pause is None
    assert job_id in taken(fleet, "beacon")[1]


@pytest.mark.rule("U001-18")
async def test_every_screen_is_told_by_whom_since_when_and_why(repository: Repository, fleet: Fleet) -> None:
    paused = await repository.call(QUEUE_PAUSE, DRAIN)

    me = await repository.call(ME, Nothing())
    pool = await repository.call(POOL_STATUS, Nothing())
    depth = await repository.call(QUEUE_DEPTH, Nothing())

    assert paused.pause is not None
    assert (paused.pause.mode, paused.pause.reason, paused.pause.by) == (DRAIN.mode, DRAIN.reason, "Ana Costa")
    since = fleet.one("select paused_at from teams where slug = 'example'")
    assert isinstance(since, datetime)
    assert shown_time(paused.pause.since) == shown_time(since)
    assert me.pause == pool.pause == depth.pause == paused.pause


@pytest.mark.rule("U001-18")
async def test_both_are_audited_once_with_who_and_why(repository: Repository, fleet: Fleet) -> None:
    for _ in range(2):
        await repository.call(QUEUE_PAUSE, DRAIN)
    for _ in range(2):
        await repository.call(QUEUE_RESUME, Nothing())

    team = str(fleet.team_id())
    paused, resumed = acts(fleet)
    assert paused == ("queue.pause", team, {"mode": "drain", "jobs": 0}, DRAIN.reason)
    assert (resumed[0], resumed[1], resumed[3]) == ("queue.resume", team, None)
    actors = fleet.execute("select distinct actor_user_id from audit_log")
    assert actors == [(fleet.user_id("ana@example.com"),)]


@pytest.mark.rule("U001-18")
async def test_a_quiesced_queue_takes_back_what_runs_at_no_cost(repository: Repository, fleet: Fleet) -> None:
    held = (await repository.call(JOBS_LIST, HELD)).items

    paused = await repository.call(QUEUE_PAUSE, QUIESCE)

    after = {job.id: job for job in (await repository.call(JOBS_LIST, JobQuery(limit=200))).items}
    assert paused.released == len(held) == 6
    assert (await repository.call(JOBS_LIST, HELD)).items == ()
    for job in held:
        ends = JobStatus.CANCELLED if job.cancel_requested_at else JobStatus.QUEUED
        queued = ends is JobStatus.QUEUED
        assert after[job.id].status is ends
        assert after[job.id].attempt == job.attempt + queued
        assert after[job.id].max_attempts == job.max_attempts + queued
        words = f"{job.status.value} to {ends.value}: the queue was paused: {QUIESCE.reason}"
        assert last_line(fleet, job.id)[0] == words
    assert acts(fleet)[0][2:] == ({"mode": "quiesce", "jobs": 6}, QUIESCE.reason)


async def test_many_held_jobs_are_taken_back_in_batches(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pausing, "RELEASED_AT_ONCE", 2)

    paused = await repository.call(QUEUE_PAUSE, QUIESCE)

    assert paused.released == 6
    assert (await repository.call(JOBS_LIST, HELD)).items == ()
    batches = [act[2] for act in acts(fleet)]
    assert len(batches) > 1
    assert sum(batch["jobs"] for batch in batches if isinstance(batch, dict)) == 6


async def test_another_pause_takes_the_place_of_the_first(repository: Repository, fleet: Fleet) -> None:
    first = await repository.call(QUEUE_PAUSE, DRAIN)

    second = await repository.call(QUEUE_PAUSE, QUIESCE)

    assert first.pause is not None
    assert second.pause is not None
    assert (second.pause.mode, second.pause.reason) == (QUIESCE.mode, QUIESCE.reason)
    assert (second.pause.since, second.released) == (first.pause.since, 6)
    assert [act[0] for act in acts(fleet)] == ["queue.pause"] * 2


async def test_whoever_watches_is_told_to_look_again(repository: Repository) -> None:
    changes = repository.changes()
    await anext(changes)

    await repository.call(QUEUE_PAUSE, DRAIN)

    async with asyncio.timeout(30):
        assert (await anext(changes)).topic is Topic.EVERYTHING
    await changes.aclose()


async def test_only_an_administrator_pauses_and_never_without_a_reason(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    operator = await open_repository(OPERATOR)

    with pytest.raises(Forbidden):
        await operator.call(QUEUE_PAUSE, DRAIN)
    with pytest.raises(Forbidden):
        await operator.call(QUEUE_RESUME, Nothing())
    with pytest.raises(ValidationError):
        QueuePausing(mode=PauseMode.DRAIN, reason="  ")

    assert fleet.one("select count(*) from teams where paused_at is not null") == 0


async def test_another_teams_queue_goes_on(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    other, ana = await open_repository("admin@other.example", "other"), await open_repository()

    await other.call(QUEUE_PAUSE, QUIESCE)

    assert (await ana.call(QUEUE_DEPTH, Nothing())).pause is None
    assert len((await ana.call(JOBS_LIST, HELD)).items) == 6

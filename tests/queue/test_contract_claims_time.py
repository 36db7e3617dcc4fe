"""What time does to a claim: schedules and retries that come due, leases that are lost."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_console.domain.states import JobStatus
from agent_console.domain.working import JobFailed
from agent_console.repository.operations.working import JOBS_FAIL
from tests.queue.crew import Crew, claim, take, take_running

# Nothing here looks after the queue but the claims themselves.


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.rule("R000-84", "R000-136", "R000-72", "R000-75")
@pytest.mark.parametrize("bound", [False, True], ids=["anybody's", "bound"])
async def test_a_scheduled_job_is_claimed_when_its_time_has_come_and_not_before(crew: Crew, bound: bool) -> None:
    atlas = await crew.agent("atlas")
    bound_to = crew.id_of("atlas") if bound else None
    made = await crew.enqueue(scheduled_for=in_an_hour(), bound_agent_id=bound_to)

    crew.time_passes(3000)
    early = await claim(atlas)
    crew.time_passes(601)
    due = await take(atlas)

    assert (early.jobs, early.reason) == ((), "nothing_queued")
    assert (due.id, due.status) == (made.id, JobStatus.ASSIGNED)
    assert crew.story(made.id) == [(None, "scheduled"), ("scheduled", "assigned")]


@pytest.mark.rule("R001-14", "R001-15", "R001-39", "R001-40", "R001-41", "U001-5", "R003-18", "R000-69", "R000-71")
async def test_a_job_that_failed_waits_its_backoff_and_then_runs_again(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    first = await take_running(atlas)
    started = crew.row(made.id)["started_at"]

    ended = await atlas.call(JOBS_FAIL, JobFailed(job_id=first.id, attempt=1, error="disk full"))
    waiting = crew.row(made.id)
    crew.time_passes(10)
    early = await claim(atlas)
    crew.time_passes(10)
    second = await take_running(atlas)

    assert ended.status is JobStatus.QUEUED
    assert (waiting["status"], waiting["attempt"]) == ("queued", 2)
    gone = [waiting[name] for name in ("agent_id", "claimed_by", "assigned_at", "lease_expires_at", "progress")]
    assert gone == [None] * 5
    assert _seconds(waiting, "updated_at", "next_attempt_at") == pytest.approx(15, abs=1.5)
    assert (early.jobs, early.reason) == ((), "nothing_queued")
    assert (second.id, second.attempt) == (made.id, 2)
    again = crew.row(made.id)
    assert isinstance(started, datetime)
    assert again["started_at"] == started - timedelta(seconds=20)
    assert again["next_attempt_at"] is None


@pytest.mark.rule("R001-41", "U001-5")
async def test_the_second_backoff_is_twice_the_first(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)

    await atlas.call(JOBS_FAIL, JobFailed(job_id=made.id, attempt=1, error="x"))
    crew.time_passes(20)
    await take_running(atlas)
    await atlas.call(JOBS_FAIL, JobFailed(job_id=made.id, attempt=2, error="x"))

    assert _seconds(crew.row(made.id), "updated_at", "next_attempt_at") == pytest.approx(30, abs=3)


@pytest.mark.rule("R003-32", "R001-44", "U003-10", "U001-5", "U001-19", "R000-69")
async def test_a_lost_lease_is_noticed_by_the_next_claim_and_the_job_runs_again_after_a_while(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue()
    await take_running(atlas, lease_seconds=60)

    crew.time_passes(61)
    nothing = await claim(beacon)
    released = crew.row(made.id)
    crew.time_passes(34)
    again = await take(beacon)

    assert nothing.jobs == ()
    assert (released["status"], released["attempt"], released["agent_id"]) == ("queued", 2, None)
    assert _seconds(released, "updated_at", "next_attempt_at") == pytest.approx(30, abs=3)
    assert (again.id, again.attempt) == (made.id, 2)
    assert crew.story(made.id)[-2:] == [("running", "queued"), ("queued", "assigned")]
    assert "lease expired: atlas did not renew it for 60 s" in str(crew.events(made.id)[-2]["message"])


@pytest.mark.rule("R001-45", "R001-43", "R001-13")
async def test_a_lease_lost_at_the_last_try_makes_a_dead_letter_that_nobody_gets(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue(max_attempts=1)
    await take_running(atlas)

    crew.time_passes(121)
    nothing = await claim(beacon)

    row = crew.row(made.id)
    assert (nothing.jobs, nothing.reason) == ((), "nothing_queued")
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("dead_letter", 1, None)
    assert "lease expired" in str(row["error_message"])
    assert row["finished_at"] is not None


@pytest.mark.rule("U001-19")
@pytest.mark.parametrize(("given", "longest"), [(None, 14_400), (60, 60)])
async def test_a_job_that_runs_too_long_is_ended_however_often_its_lease_is_renewed(
    crew: Crew, given: int | None, longest: int
) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await (crew.enqueue() if given is None else crew.enqueue(max_run_seconds=given))
    await take_running(atlas, lease_seconds=3600)

    crew.time_passes(longest - 20)
    crew.fleet.execute("update jobs set lease_expires_at = now() + interval '1 hour'")
    await claim(beacon)
    before = crew.status(made.id)
    crew.time_passes(21)
    await claim(beacon)

    row = crew.row(made.id)
    assert before == "running"
    assert (row["status"], row["attempt"], row["error_code"]) == ("queued", 2, "max_run_time")


@pytest.mark.rule("R003-32", "U003-10")
async def test_an_agent_that_lost_all_it_may_hold_claims_again(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    lost, waiting = await crew.enqueue(priority=1), await crew.enqueue()
    await take_running(atlas)

    crew.time_passes(121)
    job = await take(atlas)

    assert job.id == waiting.id
    assert (crew.row(lost.id)["status"], crew.row(lost.id)["attempt"]) == ("queued", 2)


def _seconds(row: dict[str, object], since: str, until: str) -> float:
    begin, end = row[since], row[until]
    assert isinstance(begin, datetime)
    assert isinstance(end, datetime)
    return (end - begin).total_seconds()

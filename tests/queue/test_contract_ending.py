"""How an attempt ends, what follows from it, and what its agent gets next."""

import pytest

from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.states import JobStatus
from agent_console.domain.working import CancelAcknowledged, ClaimWanted, JobDone, JobFailed
from agent_console.repository.operations.working import JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL
from tests.queue.crew import Crew, claim, take, take_running

CANCEL = "update jobs set cancel_requested_at = now() where id = %s"


@pytest.mark.rule("R000-79", "R000-89", "R001-37", "R003-25", "R003-13", "R003-15", "R003-19", "R003-36")
@pytest.mark.rule("R000-126", "R000-152", "R003-9", "U001-7")
async def test_what_is_completed_has_succeeded_with_its_result_by_the_agents_system_user(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)

    done = JobDone(job_id=made.id, attempt=1, result_summary="7 files", result={"files": 7}, artifacts_path="a/b")
    ended = await atlas.call(JOBS_COMPLETE, done)

    row, system_user = crew.row(made.id), crew.fleet.one("select system_user_id from agents where name = 'atlas'")
    assert (ended.status, ended.next) == (JobStatus.SUCCEEDED, None)
    assert (row["status"], row["result_summary"], row["artifacts_path"]) == ("succeeded", "7 files", "a/b")
    assert row["finished_at"] == row["updated_at"]
    assert (row["agent_id"], row["claimed_by"], row["lease_expires_at"]) == (crew.id_of("atlas"), None, None)
    (result,) = crew.rows("select * from job_results")
    assert (result["job_id"], result["attempt"], result["result"]) == (made.id, 1, {"files": 7})
    assert result["created_by_user_id"] == row["updated_by_user_id"] == system_user
    assert crew.story(made.id) == [(None, "queued"), ("queued", "running"), ("running", "succeeded")]


@pytest.mark.rule("R000-80", "R000-90", "R001-38", "R003-26", "R003-14", "U001-7")
@pytest.mark.parametrize("started", [True, False], ids=["running", "assigned"])
async def test_a_failure_that_is_not_worth_a_retry_ends_the_job_at_once(crew: Crew, started: bool) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take(atlas, auto_start=started)

    said = {"error": "no such path, password=x", "error_code": "gone", "retryable": False}
    failed = JobFailed.model_validate({"job_id": made.id, "attempt": 1} | said)
    ended = await atlas.call(JOBS_FAIL, failed)

    row = crew.row(made.id)
    assert ended.status is JobStatus.FAILED
    assert (row["status"], row["attempt"], row["error_code"]) == ("failed", 1, "gone")
    assert row["error_message"] == "no such path, password=«redacted»"
    assert crew.events(made.id)[-1]["level"] == "error"
    assert crew.story(made.id)[-1] == ("running" if started else "assigned", "failed")


@pytest.mark.rule("R001-42", "R001-43", "R003-12", "R001-40")
async def test_the_last_retryable_failure_makes_a_dead_letter(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue(max_attempts=3)

    ends = []
    for attempt in (1, 2, 3):
        job = await take_running(atlas)
        failed = JobFailed(job_id=made.id, attempt=job.attempt, error=f"failure {attempt}")
        ends.append((job.attempt, (await atlas.call(JOBS_FAIL, failed)).status.value))
        crew.time_passes(700)

    row = crew.row(made.id)
    assert ends == [(1, "queued"), (2, "queued"), (3, "dead_letter")]
    assert (row["attempt"], row["next_attempt_at"], row["error_message"]) == (3, None, "failure 3")
    assert (await claim(atlas)).reason == "nothing_queued"


@pytest.mark.rule("U001-14", "U001-13", "U001-16")
@pytest.mark.parametrize("started", [True, False], ids=["running", "assigned"])
async def test_an_agent_that_was_asked_to_stop_says_so_and_the_job_is_cancelled(crew: Crew, started: bool) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take(atlas, auto_start=started)
    acknowledged = CancelAcknowledged(job_id=made.id, attempt=1, message="stopped")

    with pytest.raises(Conflict) as not_asked:
        await atlas.call(JOBS_ACKNOWLEDGE, acknowledged)
    left = crew.status(made.id)
    crew.fleet.execute(CANCEL, made.id)
    ended = await atlas.call(JOBS_ACKNOWLEDGE, acknowledged)

    assert not_asked.value.code == "conflict"
    assert left == ("running" if started else "assigned")
    assert (ended.status, crew.status(made.id)) == (JobStatus.CANCELLED, "cancelled")


@pytest.mark.rule("U001-14")
@pytest.mark.parametrize("how", ["retryable failure", "failure", "lost lease"])
async def test_after_a_cancel_request_nothing_is_tried_again(crew: Crew, how: str) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    crew.fleet.execute(CANCEL, made.id)

    if how == "lost lease":
        crew.time_passes(121)
        await claim(atlas)
    else:
        failed = JobFailed(job_id=made.id, attempt=1, error="x", retryable=how == "retryable failure")
        await atlas.call(JOBS_FAIL, failed)

    row = crew.row(made.id)
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("cancelled", 1, None)
    assert (await claim(atlas)).reason == "nothing_queued"


async def test_what_was_done_before_the_agent_heard_of_the_cancel_is_done(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    crew.fleet.execute(CANCEL, made.id)

    ended = await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=1))

    assert ended.status is JobStatus.SUCCEEDED


@pytest.mark.rule("R003-34", "U003-4", "U003-10")
async def test_a_late_worker_can_not_finish_what_another_has_taken_over(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue()
    await take_running(atlas)
    crew.time_passes(121)
    await claim(beacon)
    crew.time_passes(34)
    await take_running(beacon)
    before = crew.row(made.id)

    with pytest.raises(Conflict) as refused:
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=1, result={"late": True}))

    assert refused.value.code == "not_owner"
    assert crew.row(made.id) == before
    assert crew.rows("select * from job_results") == []


@pytest.mark.parametrize("how", ["complete", "fail", "acknowledge"])
async def test_ending_one_and_getting_the_next_is_one_step(crew: Crew, how: str) -> None:
    atlas = await crew.agent("atlas")
    first, second = await crew.enqueue(priority=1), await crew.enqueue()
    await take_running(atlas)
    if how == "acknowledge":
        crew.fleet.execute(CANCEL, first.id)
    whose = {"job_id": first.id, "attempt": 1, "claim_next": ClaimWanted(auto_start=True, lease_seconds=300)}

    match how:
        case "complete":
            ended = await atlas.call(JOBS_COMPLETE, JobDone.model_validate(whose))
        case "fail":
            ended = await atlas.call(JOBS_FAIL, JobFailed.model_validate(whose | {"error": "x"}))
        case _:
            ended = await atlas.call(JOBS_ACKNOWLEDGE, CancelAcknowledged.model_validate(whose))

    assert ended.next is not None
    assert ended.next.job is not None
    assert (ended.next.job.id, ended.next.job.status) == (second.id, JobStatus.RUNNING)
    assert crew.row(second.id)["lease_seconds"] == 300


async def test_ending_the_last_says_why_there_is_no_next(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)

    ended = await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=1, claim_next=ClaimWanted()))

    assert ended.status is JobStatus.SUCCEEDED
    assert ended.next is not None
    assert (ended.next.jobs, ended.next.reason) == ((), "nothing_queued")


@pytest.mark.rule("R003-34", "R003-35")
@pytest.mark.parametrize("known", [True, False], ids=["known", "with new capabilities"])
async def test_whoever_is_refused_to_end_a_job_gets_no_other(crew: Crew, known: bool) -> None:
    """It would not hear of it, and the job would wait for its lease to end."""
    crew.fleet.execute("update agents set max_concurrent_jobs = 3 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    await claim(atlas)
    mine, waiting = await crew.enqueue(priority=1), await crew.enqueue()
    await take_running(atlas)
    if not known:
        new = "update agent_runtime set capabilities = %s::jsonb where agent_id = %s"
        crew.fleet.execute(new, '["new"]', crew.id_of("atlas"))

    with pytest.raises(Conflict):
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=mine.id, attempt=2, claim_next=ClaimWanted()))

    assert (crew.status(mine.id), crew.status(waiting.id)) == ("running", "queued")


@pytest.mark.rule("R003-39")
async def test_a_next_claim_that_asks_for_too_much_ends_nothing(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    before = crew.row(made.id)

    with pytest.raises(ConsoleError) as refused:
        done = JobDone(job_id=made.id, attempt=1, claim_next=ClaimWanted(lease_seconds=3601))
        await atlas.call(JOBS_COMPLETE, done)

    assert refused.value.details["fields"] == [
        {"field": "claim_next.lease_seconds", "problem": "must be at most 3600"}
    ]
    assert crew.row(made.id) == before


@pytest.mark.rule("U000-45", "U001-17")
async def test_a_limit_that_was_lowered_holds_for_whoever_goes_on_from_job_to_job(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 3 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    for _ in range(6):
        await crew.enqueue()
    held = [await take_running(atlas) for _ in range(3)]
    crew.fleet.execute("update agents set max_concurrent_jobs = 1 where name = 'atlas'")

    ends = [
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=1, claim_next=ClaimWanted(auto_start=True)))
        for job in held
    ]

    got = [end.next for end in ends if end.next is not None]
    assert [(len(one.jobs), one.reason) for one in got[:2]] == [(0, "at_your_limit")] * 2
    assert len(got[2].jobs) == 1
    assert crew.fleet.one("select over_limit from agents where name = 'atlas'") is False
    again = JobDone(job_id=got[2].jobs[0].id, attempt=1, claim_next=ClaimWanted())
    after = (await atlas.call(JOBS_COMPLETE, again)).next
    assert after is not None
    assert len(after.jobs) == 1

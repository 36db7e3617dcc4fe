"""What an agent tells of a job it holds, and who is refused to tell anything."""

from datetime import datetime

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import Conflict, ConsoleError, Invalid, NotFound
from agent_console.domain.ids import JobId
from agent_console.domain.states import JobStatus
from agent_console.domain.working import (
    CancelAcknowledged,
    EventLine,
    HeldJob,
    JobDone,
    JobFailed,
    JobLines,
    JobProgress,
    JobRenewal,
    JobStart,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.working import (
    JOBS_ACKNOWLEDGE,
    JOBS_COMPLETE,
    JOBS_FAIL,
    JOBS_LOG,
    JOBS_PROGRESS,
    JOBS_RENEW,
    JOBS_START,
)
from tests.queue.crew import Crew, Row, claim, take, take_running

HELLO = (EventLine(message="hello"),)


def every_report(job_id: JobId, attempt: int) -> list[tuple[AnyOperation, HeldJob]]:
    whose = {"job_id": job_id, "attempt": attempt}
    return [
        (JOBS_START, JobStart.model_validate(whose)),
        (JOBS_RENEW, JobRenewal.model_validate(whose)),
        (JOBS_PROGRESS, JobProgress.model_validate(whose | {"percentage": 1})),
        (JOBS_LOG, JobLines.model_validate(whose | {"events": HELLO})),
        (JOBS_COMPLETE, JobDone.model_validate(whose)),
        (JOBS_FAIL, JobFailed.model_validate(whose | {"error": "x"})),
        (JOBS_ACKNOWLEDGE, CancelAcknowledged.model_validate(whose)),
    ]


@pytest.mark.rule("R000-78", "R000-88", "R000-70", "R003-36")
@pytest.mark.parametrize("how", ["start", "progress", "log"])
async def test_the_first_word_of_work_makes_an_assigned_job_running(crew: Crew, how: str) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take(atlas)
    assigned = crew.row(made.id)
    (operation, said) = next(pair for pair in every_report(made.id, 1) if pair[0].name == f"jobs.{how}")

    answer = await atlas.call(operation, said)

    running = crew.row(made.id)
    assert (answer.status, answer.cancel_requested) == (JobStatus.RUNNING, False)
    assert (assigned["started_at"], running["status"]) == (None, "running")
    assert running["started_at"] == running["updated_at"] != assigned["updated_at"]
    assert crew.story(made.id)[-1] == ("assigned", "running")


async def test_starting_twice_changes_nothing(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    before = crew.row(made.id), crew.story(made.id)

    answer = await atlas.call(JOBS_START, JobStart(job_id=made.id, attempt=1))

    assert answer.status is JobStatus.RUNNING
    assert (crew.row(made.id), crew.story(made.id)) == before


@pytest.mark.rule("R003-24", "U001-7", "R003-36")
async def test_renewing_moves_the_lease_and_nothing_else(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas, lease_seconds=100)
    crew.time_passes(50)
    crew.fleet.execute("update jobs set updated_by_user_id = created_by_user_id")
    before = crew.row(made.id)

    lease = await atlas.call(JOBS_RENEW, JobRenewal(job_id=made.id, attempt=1))

    after = crew.row(made.id)
    assert {name for name in after if after[name] != before[name]} == {"lease_expires_at", "updated_at"}
    assert _length(after) == 100
    assert abs((lease.lease_expires_at - _time(after["lease_expires_at"])).total_seconds()) < 0.01
    assert lease.cancel_requested is False
    assert crew.events(made.id)[-1]["message"] == "lease renewed for 100 s"


@pytest.mark.rule("R003-39", "R003-38")
async def test_a_renewal_may_be_no_longer_than_a_claim(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    before = crew.row(made.id)

    with pytest.raises(Invalid) as refused:
        await atlas.call(JOBS_RENEW, JobRenewal(job_id=made.id, attempt=1, lease_seconds=3601))
    left = crew.row(made.id)
    await atlas.call(JOBS_RENEW, JobRenewal(job_id=made.id, attempt=1, lease_seconds=3600))

    assert refused.value.details["fields"] == [{"field": "lease_seconds", "problem": "must be at most 3600"}]
    assert left == before
    assert _length(crew.row(made.id)) == 3600


@pytest.mark.rule("R001-44", "U003-10")
async def test_a_lease_that_was_made_shorter_is_lost_when_it_says(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue()
    await take_running(atlas, lease_seconds=3600)

    await atlas.call(JOBS_RENEW, JobRenewal(job_id=made.id, attempt=1, lease_seconds=10))
    crew.time_passes(11)
    await claim(beacon)

    assert (crew.row(made.id)["status"], crew.row(made.id)["attempt"]) == ("queued", 2)


@pytest.mark.rule("R000-94", "R000-95", "R000-96", "R000-97", "R000-98", "R000-99")
@pytest.mark.rule("R000-71", "R000-127", "U001-21", "R000-78")
async def test_progress_is_shown_as_it_was_said_last_without_secrets(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    whose = {"job_id": made.id, "attempt": 1}

    await atlas.call(JOBS_PROGRESS, JobProgress.model_validate(whose | {"stage": "listing", "message": "early"}))
    said = {
        "stage": "scanning",
        "percentage": 40,
        "files_scanned": 4,
        "total_files": 10,
        "current_file": "/vol/a?token=abc123secret",
        "message": "password=hunter2",
    }
    await atlas.call(JOBS_PROGRESS, JobProgress.model_validate(whose | said))

    row = crew.row(made.id)
    assert row["progress"] == said | {
        "current_file": "/vol/a?token=«redacted»",
        "message": "password=«redacted»",
    }
    system_user = crew.fleet.one("select system_user_id from agents where name = 'atlas'")
    assert row["updated_by_user_id"] == system_user


@pytest.mark.rule("R001-19", "R001-22", "R001-23", "U001-21", "R001-18")
async def test_lines_are_added_to_the_story_in_their_order_without_secrets(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    lines = [{"message": f"line {number}"} for number in range(30)]
    special = {"level": "warn", "message": "token=abc", "payload": {"password": "x", "n": [1, None]}}

    said = {"job_id": made.id, "attempt": 1, "events": [*lines, special]}
    await atlas.call(JOBS_LOG, JobLines.model_validate(said))

    told = crew.events(made.id)[2:]
    assert [event["message"] for event in told] == [f"line {number}" for number in range(30)] + [
        "token=«redacted»"
    ]
    assert (told[-1]["level"], told[-1]["payload"]) == ("warn", {"password": "«redacted»", "n": [1, None]})
    assert {event["attempt"] for event in told} == {1}
    system_user = crew.fleet.one("select system_user_id from agents where name = 'atlas'")
    assert {event["created_by_user_id"] for event in told} == {system_user}


@pytest.mark.rule("R003-33", "R003-34", "R003-35", "U003-4", "U001-16")
async def test_another_agent_and_an_attempt_that_is_over_are_refused_and_change_nothing(crew: Crew) -> None:
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    made = await crew.enqueue()
    await take_running(atlas)
    before = crew.row(made.id), crew.events(made.id)

    refusals = {}
    for who, attempt in ((beacon, 1), (atlas, 2)):
        for operation, said in every_report(made.id, attempt):
            with pytest.raises(Conflict) as refused:
                await who.call(operation, said)
            refusals[operation.name, attempt] = refused.value.code

    assert len(refusals) == 14
    assert set(refusals.values()) == {"not_owner"}
    assert (crew.row(made.id), crew.events(made.id)) == before


@pytest.mark.rule("R003-44", "U003-4")
async def test_a_job_that_is_not_there_is_not_found(crew: Crew) -> None:
    atlas = await crew.agent("atlas")

    codes = set()
    for operation, said in every_report(JobId.new(), 1):
        with pytest.raises(NotFound) as refused:
            await atlas.call(operation, said)
        codes.add(refused.value.code)

    assert codes == {"not_found"}


@pytest.mark.rule("U000-27")
async def test_a_revoked_agent_reports_nothing(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    await take_running(atlas)
    crew.fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'atlas'")
    before = crew.row(made.id)

    reasons = []
    for operation, said in every_report(made.id, 1):
        with pytest.raises(ConsoleError) as refused:
            await atlas.call(operation, said)
        reasons.append((refused.value.code, refused.value.details.get("reason")))

    assert reasons == [("forbidden", "revoked")] * 7
    assert crew.row(made.id) == before


WHOSE = {"job_id": "job_01h455vb4pex5vsknk084sn02q", "attempt": 1}
OUTSIDE: list[tuple[type[HeldJob], str, object]] = [
    (JobStart, "attempt", 0),
    (JobRenewal, "lease_seconds", 9),
    (JobRenewal, "lease_seconds", 86_401),
    (JobProgress, "percentage", 101),
    (JobProgress, "percentage", -1),
    (JobProgress, "percentage", 1.5),
    (JobProgress, "stage", "x" * 201),
    (JobProgress, "stage", "a\0b"),
    (JobProgress, "current_file", "x" * 2001),
    (JobProgress, "current_file", "\0"),
    (JobProgress, "message", "\0"),
    (JobProgress, "files_scanned", -1),
    (JobProgress, "total_files", -1),
    (JobProgress, "mood", "fine"),
    (JobLines, "events", []),
    (JobLines, "events", [{"message": "x"}] * 501),
    (JobLines, "events", [{"message": "  "}]),
    (JobLines, "events", [{"message": "a\0b"}]),
    (JobLines, "events", [{"message": "x", "level": "debug"}]),
    (JobLines, "events", [{"message": "x", "payload": [1]}]),
    (JobLines, "events", [{"message": "x", "payload": {"deep": ["\0"]}}]),
    (JobLines, "events", [{"message": "x", "payload": {"\0": 1}}]),
    (JobDone, "result_summary", "x" * 10_001),
    (JobDone, "result_summary", "\0"),
    (JobDone, "result", [1]),
    (JobDone, "result", {"a": "\0"}),
    (JobDone, "result", {"a": float("inf")}),
    (JobDone, "signature", "short"),
    (JobDone, "artifacts_path", "x" * 1001),
    (JobDone, "artifacts_path", "a\0b"),
    (JobDone, "claim_next", {"count": 51}),
    (JobFailed, "error", ""),
    (JobFailed, "error", "a\0b"),
    (JobFailed, "error_code", ""),
    (JobFailed, "error_code", "a\0b"),
    (CancelAcknowledged, "message", "a\0b"),
]


@pytest.mark.rule("R000-95", "R001-19", "R001-20", "R001-21", "R001-22", "R003-14")
@pytest.mark.parametrize(("kind", "field", "value"), OUTSIDE, ids=lambda value: str(value)[:40])
def test_what_no_report_can_say_is_refused_by_name(kind: type[HeldJob], field: str, value: object) -> None:
    given = WHOSE | ({"error": "x"} if kind is JobFailed else {}) | {field: value}

    with pytest.raises(ValidationError) as refused:
        kind.model_validate(given)

    assert {error["loc"][0] for error in refused.value.errors()} == {field}


def _time(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value


def _length(row: Row) -> float:
    """Of the lease that was written with the last change."""
    return (_time(row["lease_expires_at"]) - _time(row["updated_at"])).total_seconds()

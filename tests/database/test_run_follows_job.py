"""A run's status follows that of its job: the database sees to it, whoever moves the job."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pytest import mark, param

from agent_console.domain.ids import RunId
from tests.database import rows
from tests.database.job_states import AT, FINAL, in_state
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

EARLIER = datetime(2026, 2, 1, tzinfo=UTC)
LOOKS: dict[str, object] = {"queued": "-infinity"} | dict.fromkeys(("assigned", "running"), AT)


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "run_follows") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def run_with_job(team: Team, job_status: str, **run: object) -> tuple[Row, Row]:
    """A run and its job, which is in the given state."""
    made = rows.add_run(team, updated_at=EARLIER, **run)
    return made, rows.add_job(team, run_id=made["id"], **in_state(job_status))


def move(team: Team, job: Row, status: str, **changes: object) -> None:
    """Into a state, with everything that the state asks for."""
    unheld: Row = dict.fromkeys(("agent_id", "claimed_by", "assigned_at", "lease_expires_at"))
    wanted = unheld | {"look_at": LOOKS.get(status)} | in_state(status) | changes
    given = {name: value(team) if callable(value) else value for name, value in wanted.items()}
    columns = ", ".join(f"{name} = %s" for name in given)
    team.execute(f"update jobs set {columns} where id = %s", *given.values(), job["id"])


def now(team: Team) -> object:
    (clock,) = team.execute("select now() as at")
    return clock["at"]


FOLLOWS = (
    param("running", {}, "running", marks=mark.rule("R000-88", "R002-65")),
    param("succeeded", {}, "succeeded", marks=mark.rule("R002-65")),
    param("failed", {"error_code": "crash"}, "failed"),
    param("failed", {"error_code": "deadline"}, "timeout", marks=mark.rule("R002-55")),
    param("dead_letter", {"error_code": "lease_expired"}, "failed"),
    param("dead_letter", {"error_code": "deadline"}, "timeout"),
    param("dead_letter", {}, "failed"),
    param("cancelled", {}, "cancelled"),
    param("cancelled", {"error_code": "deadline"}, "cancelled"),
)


@mark.parametrize(("status", "changes", "follows"), FOLLOWS)
def test_a_run_follows_its_job(team: Team, status: str, changes: Row, follows: str) -> None:
    run, job = run_with_job(team, "assigned")

    move(team, job, status, error_message="said so", **changes)

    kept = team.stored("runs", run)
    assert (kept["status"], kept["updated_at"]) == (follows, now(team))
    told = (None, None) if status == "running" else (changes.get("error_code"), "said so")
    assert (kept["error_code"], kept["error_message"]) == told


@mark.rule("R002-61")
@mark.parametrize("status", FINAL)
def test_a_run_ends_when_its_job_ends(team: Team, status: str) -> None:
    run, job = run_with_job(team, "running", status="running", started_at=EARLIER)

    move(team, job, status)

    kept = team.stored("runs", run)
    assert (kept["started_at"], kept["ended_at"]) == (EARLIER, now(team))


@mark.rule("R002-61")
def test_a_run_starts_when_its_job_starts(team: Team) -> None:
    run, job = run_with_job(team, "assigned")

    move(team, job, "running")

    kept = team.stored("runs", run)
    assert (kept["started_at"], kept["ended_at"]) == (now(team), None)


def test_a_run_waits_while_its_job_is_only_taken(team: Team) -> None:
    run, job = run_with_job(team, "queued")
    before = team.stored("runs", run)

    move(team, job, "assigned")

    assert team.stored("runs", run) == before
    assert before["status"] == "queued"


def test_a_retry_leaves_the_run_running_since_its_first_start(team: Team) -> None:
    run, job = run_with_job(team, "running", status="running", started_at=EARLIER)
    before = team.stored("runs", run)

    move(team, job, "queued", attempt=2)
    between = team.stored("runs", run)
    move(team, job, "assigned")
    move(team, job, "running")

    assert between == before
    kept = team.stored("runs", run)
    assert (kept["status"], kept["started_at"], kept["ended_at"]) == ("running", EARLIER, None)


@mark.parametrize("ended", ["succeeded", "failed", "cancelled", "timeout"])
@mark.parametrize("status", ["running", *FINAL])
def test_an_ended_run_never_changes(team: Team, ended: str, status: str) -> None:
    run, job = run_with_job(team, "assigned", status=ended, ended_at=EARLIER)
    before = team.stored("runs", run)

    move(team, job, status)

    assert team.stored("runs", run) == before


@mark.rule("R002-63")
def test_what_came_of_the_job_is_added_to_what_the_run_tells(team: Team) -> None:
    run, job = run_with_job(team, "running", status="running", output_summary={"files": 7})

    move(team, job, "succeeded", result_summary="all well")

    assert team.stored("runs", run)["output_summary"] == {"files": 7, "summary": "all well"}


@mark.parametrize(("status", "summary"), [("succeeded", None), ("failed", "half done")])
def test_a_job_that_has_nothing_to_tell_leaves_what_the_run_tells(
    team: Team, status: str, summary: str | None
) -> None:
    run, job = run_with_job(team, "running", status="running", output_summary={"files": 7})

    move(team, job, status, result_summary=summary)

    assert team.stored("runs", run)["output_summary"] == {"files": 7}


def test_a_job_that_stays_what_it_is_leaves_its_run_alone(team: Team) -> None:
    run, job = run_with_job(team, "running")
    before = team.stored("runs", run)

    team.execute("update jobs set progress = '{}', lease_expires_at = now() where id = %s", job["id"])

    assert team.stored("runs", run) == before
    assert before["status"] == "queued", "a change of the job's status would have moved it"


def test_a_run_of_another_team_with_the_same_id_is_left_alone(team: Team) -> None:
    other = rows.make_team(team.connection, "south")
    same = RunId.new()
    theirs = rows.add_run(other, id=same)
    ours, job = run_with_job(team, "running", id=same)

    move(team, job, "succeeded")

    assert (team.stored("runs", ours)["status"], other.stored("runs", theirs)["status"]) == ("succeeded", "queued")

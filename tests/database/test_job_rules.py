"""What one row of jobs must keep, whatever is done to it: its rules stand in one function, each with its name."""

import re
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from pytest import mark, param

from agent_console.domain.states import JobStatus
from tests.database import rows
from tests.database.job_states import AT, FINAL, STATES, in_state
from tests.database.rows import adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

# Each at its limit, so that one more is too many.
WIDEST: Row = {
    "type": "x" * 100,
    "priority": 1000,
    "attempt": 100,
    "max_attempts": 100,
    "lease_seconds": 86400,
    "max_run_seconds": 604800,
    "tool": "x" * 100,
    "repository": "x" * 500,
    "affinity_key": "x" * 255,
    "idempotency_key": "x" * 255,
    "artifacts_path": "x" * 1000,
}
LEAST: Row = {"type": "x", "priority": -1000, "attempt": 1, "max_attempts": 1} | dict.fromkeys(
    ("lease_seconds", "max_run_seconds"), 1
)


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "job_rules") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


REFUSED = (
    param({"type": " "}, "jobs_type_given", marks=mark.rule("R003-2")),
    param({"type": "x" * 101}, "jobs_type_given"),
    param({"status": "done"}, "jobs_status_known", marks=mark.rule("R003-3")),
    param({"status": "QUEUED"}, "jobs_status_known", marks=mark.rule("R000-133")),
    param({"payload": ["a"]}, "jobs_payload_object", marks=mark.rule("R003-5")),
    param({"id": uuid4()}, "jobs_id_v7"),
    param({"required_capabilities": {}}, "jobs_required_capabilities_array", marks=mark.rule("R000-67")),
    param(in_state("running", progress=["a"]), "jobs_progress_object"),
    *(
        param(in_state("running", progress={"percentage": value}), "jobs_progress_percentage")
        for value in (-1, 101, "many", True, [50])
    ),
    param({"attempt": 0}, "jobs_attempt_bound", marks=mark.rule("R003-11")),
    param({"attempt": 4}, "jobs_attempt_bound", marks=mark.rule("R003-12")),
    param({"max_attempts": 101}, "jobs_max_attempts_bounds"),
    param({"priority": 1001}, "jobs_priority_bounds"),
    param({"priority": -1001}, "jobs_priority_bounds"),
    param({"lease_seconds": 0}, "jobs_lease_bounds", marks=mark.rule("R003-38")),
    param({"lease_seconds": -5}, "jobs_lease_bounds", marks=mark.rule("R003-38")),
    param({"lease_seconds": 86401}, "jobs_lease_bounds", marks=mark.rule("R003-38")),
    param({"max_run_seconds": 0}, "jobs_max_run_bounds"),
    param({"max_run_seconds": 604801}, "jobs_max_run_bounds"),
    param({"lease_expires_at": AT}, "jobs_lease_state", marks=mark.rule("R003-10")),
    param(in_state("assigned", lease_expires_at=None), "jobs_lease_state", marks=mark.rule("R003-10")),
    param(in_state("running", lease_expires_at=None), "jobs_lease_state", marks=mark.rule("R003-10")),
    *(
        param(in_state(status, lease_expires_at=AT), "jobs_lease_state", marks=mark.rule("R003-10"))
        for status in FINAL
    ),
    *(
        param(in_state(status, agent_id=rows.agent_id), "jobs_owner_state", marks=mark.rule("R000-68"))
        for status in ("queued", "scheduled")
    ),
    param({"assigned_at": AT}, "jobs_owner_state", marks=mark.rule("R000-69")),
    param(in_state("assigned", assigned_at=None), "jobs_owner_state", marks=mark.rule("R000-69")),
    param({"progress": {"percentage": 40}}, "jobs_owner_state", marks=mark.rule("R000-71")),
    param({"claimed_by": "atlas"}, "jobs_owner_state", marks=mark.rule("R003-9")),
    param(in_state("assigned", claimed_by=None), "jobs_owner_state", marks=mark.rule("R003-9")),
    param(in_state("running", agent_id=None), "jobs_owner_state", marks=mark.rule("R000-68")),
    *(
        param(in_state(status, claimed_by="atlas"), "jobs_owner_state", marks=mark.rule("R003-9"))
        for status in FINAL
    ),
    param({"finished_at": AT}, "jobs_terminal_finish", marks=mark.rule("R003-19")),
    *(
        param(in_state(status, finished_at=None), "jobs_terminal_finish", marks=mark.rule("R003-19", "R003-37"))
        for status in FINAL
    ),
    param(in_state("running", started_at=None), "jobs_running_has_start", marks=mark.rule("R000-70")),
    param({"status": "scheduled"}, "jobs_scheduled_has_time", marks=mark.rule("R000-72")),
    *(
        param({"scheduled_for": time}, "jobs_scheduled_bounds")
        for time in ("9999-12-31 23:59:59-05", "0001-01-01 00:00+10", "infinity", "-infinity")
    ),
    *(
        param(in_state(status, next_attempt_at=AT), "jobs_retry_waits_queued", marks=mark.rule("R001-14"))
        for status in ("scheduled", "assigned", "running", "dead_letter")
    ),
    param({"look_at": AT}, "jobs_look_state"),
    *(
        param(in_state(status, cancel_requested_at=AT), "jobs_cancel_never_requeued")
        for status in ("queued", "scheduled")
    ),
    param({"parent_job_id": rows.job_id}, "jobs_parent_whole"),
    param({"parent_kind": "copy"}, "jobs_parent_kind_known"),
    param({"signing_secret_hash": "x"}, "jobs_signing_secret_hash_sha256"),
    param({"tool": "x" * 101}, "jobs_tool_length"),
    param({"repository": "x" * 501}, "jobs_repository_length"),
    param({"affinity_key": "x" * 256}, "jobs_affinity_key_length"),
    param({"idempotency_key": "x" * 256}, "jobs_idempotency_key_length"),
    param({"artifacts_path": "x" * 1001}, "jobs_artifacts_path_length"),
)  # fmt: skip


@mark.parametrize(("changes", "rule"), REFUSED)
def test_a_job_that_breaks_a_rule_is_refused(team: Team, changes: Row, rule: str) -> None:
    assert refused_by(team, adding(team, "jobs", **changes)) == rule


@mark.rule("R001-13", "R003-3")
def test_every_status_is_stored(team: Team) -> None:
    kept = [team.stored("jobs", rows.add_job(team, **in_state(status)))["status"] for status in STATES]

    assert kept == list(STATES) == [status.value for status in JobStatus]


@mark.parametrize("percentage", [0, 100, None])
def test_progress_goes_from_nothing_to_all(team: Team, percentage: int | None) -> None:
    job = rows.add_job(team, **in_state("running", progress={"percentage": percentage}))

    assert team.stored("jobs", job)["progress"] == {"percentage": percentage}


@mark.rule("R001-14")
def test_a_retry_may_wait_for_its_time(team: Team) -> None:
    job = rows.add_job(team, next_attempt_at=AT)

    assert team.stored("jobs", job)["next_attempt_at"] == AT


@mark.parametrize("limits", [WIDEST, LEAST])
def test_what_lies_at_a_limit_is_kept(team: Team, limits: Row) -> None:
    kept = team.stored("jobs", rows.add_job(team, **limits))

    assert {name: kept[name] for name in limits} == limits


CHANGES = (
    param("priority = 1001", "jobs_priority_bounds"),
    param("status = 'running'", "jobs_lease_state", marks=mark.rule("R003-10")),
    param("look_at = null", "jobs_look_state"),
    param("payload = '[]'", "jobs_payload_object", marks=mark.rule("R003-5")),
)


@mark.parametrize(("change", "rule"), CHANGES)
def test_a_change_that_breaks_a_rule_is_refused_and_the_job_stays(team: Team, change: str, rule: str) -> None:
    job = rows.add_job(team)
    before = team.stored("jobs", job)

    refusal = refused_by(team, lambda: team.execute(f"update jobs set {change} where id = %s", job["id"]))

    assert refusal == rule
    assert team.stored("jobs", job) == before


@mark.parametrize(
    ("changes", "rule"), [({"priority": 1001}, "jobs_priority_bounds"), ({"payload": []}, "jobs_payload_object")]
)
def test_a_refusal_reads_like_that_of_a_check_of_its_own(team: Team, changes: Row, rule: str) -> None:
    """Whoever asks which rule is broken need not know that a function found it."""
    with pytest.raises(psycopg.errors.CheckViolation) as caught, team.connection.transaction():
        rows.add_job(team, **changes)

    told = caught.value.diag
    assert (told.table_name, told.constraint_name) == ("jobs", rule)
    assert told.message_primary == f'new row for relation "jobs" violates check constraint "{rule}"'


# Everything that a move of a job writes, each with values that fit one state or another, or none.
MOVED: dict[str, tuple[str | int | None, ...]] = {
    "status": tuple(STATES),
    "agent_id": (None,),
    "claimed_by": (None, "atlas"),
    "assigned_at": (None, "2026-03-01T03:00:00Z"),
    "started_at": (None, "2026-03-01T03:00:00Z"),
    "finished_at": (None, "2026-03-01T03:00:00Z"),
    "lease_expires_at": (None, "2026-03-01T03:00:00Z"),
    "next_attempt_at": (None, "2026-03-01T03:00:00Z"),
    "look_at": (None, "-infinity", "2026-03-01T03:00:00Z"),
    "lease_seconds": (None, 0, 1, 86400, 86401),
    "attempt": (0, 1, 3, 4),
    "progress": (None, '{"percentage": 101}', '{"percentage": 40}', "[]"),
    "artifacts_path": (None, "x" * 1000, "x" * 1001),
}


@mark.parametrize("status", STATES)
def test_a_move_is_refused_exactly_when_it_breaks_a_rule(team: Team, status: str) -> None:
    """The short question that a move is asked lets nothing pass that the whole list would not."""
    job = rows.add_job(team, **in_state(status, lease_seconds=120))

    for column, values in MOVED.items():
        for value in values:
            change = f"update jobs set {column} = %s where id = %s"
            (found,) = team.execute(
                "select broken_job_rule(jsonb_populate_record(j,"
                f" jsonb_build_object(%s::text, %s::{_kind(column)}))) as broken from jobs j where id = %s",
                *(column, value, job["id"]),
            )
            told = None
            try:
                with team.connection.transaction(force_rollback=True):
                    team.execute(change, value, job["id"])
            except psycopg.errors.CheckViolation as refusal:
                told = refusal.diag.constraint_name
            assert told == found["broken"], (column, value)


def _kind(column: str) -> str:
    kinds = {"lease_seconds": "integer", "attempt": "integer", "progress": "jsonb"}
    return kinds.get(column, "text")


def test_every_rule_of_the_function_is_tried(team: Team) -> None:
    (function,) = team.execute("select prosrc from pg_proc where proname = 'broken_job_rule'")

    named = set(re.findall(r"then '(jobs_\w+)'", str(function["prosrc"])))

    assert len(named) == str(function["prosrc"]).count("is false then")
    assert named == {str(case.values[1]) for case in REFUSED}


def test_every_column_with_a_rule_is_looked_at_when_it_changes(team: Team) -> None:
    """A move is asked for the columns it writes; all the others of the rules have to be named by the trigger."""
    (function,) = team.execute("select prosrc from pg_proc where proname = 'broken_job_rule'")
    named = team.execute(
        "select attname from pg_trigger join pg_attribute on attrelid = tgrelid and attnum = any (tgattr)"
        " where tgrelid = 'jobs'::regclass and tgname = 'jobs_rules'"
    )

    ruled = set(re.findall(r"job\.(\w+)", str(function["prosrc"])))

    assert ruled == set(MOVED) | {str(row["attname"]) for row in named}


def test_no_check_stands_beside_the_function(team: Team) -> None:
    """Each would be read anew from the catalogue by every statement."""
    assert rows.checks_of(team, "jobs", "job_events") == set()

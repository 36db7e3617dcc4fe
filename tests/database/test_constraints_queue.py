"""What the schema itself refuses and keeps for lanes, jobs, their events and their results."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pytest import mark, param

from agent_console.domain.ids import JobId
from agent_console.domain.states import JobStatus
from tests.database import rows
from tests.database.rows import ADD, Row, Team, adding, refused_by
from tests.support.clusters import TemplateDatabase

TABLES = ("lanes", "agent_lanes", "jobs", "job_events", "job_results")
AT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)

HELD: Row = {"agent_id": rows.agent_id, "claimed_by": "atlas", "assigned_at": AT, "lease_expires_at": AT}
STATES: dict[str, Row] = {
    "scheduled": {"scheduled_for": AT},
    "queued": {},
    "assigned": HELD,
    "running": HELD | {"started_at": AT},
    "succeeded": {"finished_at": AT},
    "failed": {"finished_at": AT},
    "dead_letter": {"finished_at": AT},
    "cancelled": {"finished_at": AT},
}
FINAL = ("succeeded", "failed", "dead_letter", "cancelled")


def in_state(status: str, **changes: object) -> Row:
    return {"status": status} | STATES[status] | changes


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "queue") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


REFUSED = (
    param("lanes", {"key": "short"}, "lanes_key_sha256"),
    param("lanes", {"required_capabilities": Jsonb("git")}, "lanes_required_capabilities_array"),
    param("lanes", {"required_capabilities": ["git", "git"]}, "lanes_required_capabilities_clean"),
    param("agent_lanes", {"rank": 2}, "agent_lanes_rank_known"),
    param("jobs", {"type": " "}, "jobs_type_given", marks=mark.rule("R003-2")),
    param("jobs", {"type": "x" * 101}, "jobs_type_given"),
    param("jobs", {"status": "done"}, "jobs_status_known", marks=mark.rule("R003-3")),
    param("jobs", {"status": "QUEUED"}, "jobs_status_known", marks=mark.rule("R000-133")),
    param("jobs", {"payload": ["a"]}, "jobs_payload_object", marks=mark.rule("R003-5")),
    param("jobs", {"required_capabilities": {}}, "jobs_required_capabilities_array", marks=mark.rule("R000-67")),
    param("jobs", in_state("running", progress=["a"]), "jobs_progress_object"),
    *(
        param("jobs", in_state("running", progress={"percentage": value}), "jobs_progress_percentage")
        for value in (-1, 101, "many", True, [50])
    ),
    param("jobs", {"attempt": 0}, "jobs_attempt_bound", marks=mark.rule("R003-11")),
    param("jobs", {"attempt": 4}, "jobs_attempt_bound", marks=mark.rule("R003-12")),
    param("jobs", {"max_attempts": 101}, "jobs_max_attempts_bounds"),
    param("jobs", {"priority": 1001}, "jobs_priority_bounds"),
    param("jobs", {"lease_seconds": 0}, "jobs_lease_bounds", marks=mark.rule("R003-38")),
    param("jobs", {"lease_seconds": -5}, "jobs_lease_bounds", marks=mark.rule("R003-38")),
    param("jobs", {"max_run_seconds": 0}, "jobs_max_run_bounds"),
    param("jobs", {"lease_expires_at": AT}, "jobs_lease_state", marks=mark.rule("R003-10")),
    param("jobs", in_state("assigned", lease_expires_at=None), "jobs_lease_state", marks=mark.rule("R003-10")),
    param("jobs", in_state("running", lease_expires_at=None), "jobs_lease_state", marks=mark.rule("R003-10")),
    *(
        param("jobs", in_state(status, lease_expires_at=AT), "jobs_lease_state", marks=mark.rule("R003-10"))
        for status in FINAL
    ),
    *(
        param(
            "jobs", in_state(status, agent_id=rows.agent_id), "jobs_owner_state", marks=mark.rule("R000-68")
        )
        for status in ("queued", "scheduled")
    ),
    param("jobs", {"assigned_at": AT}, "jobs_owner_state", marks=mark.rule("R000-69")),
    param("jobs", in_state("assigned", assigned_at=None), "jobs_owner_state", marks=mark.rule("R000-69")),
    param("jobs", {"progress": {"percentage": 40}}, "jobs_owner_state", marks=mark.rule("R000-71")),
    param("jobs", {"claimed_by": "atlas"}, "jobs_owner_state", marks=mark.rule("R003-9")),
    param("jobs", in_state("assigned", claimed_by=None), "jobs_owner_state", marks=mark.rule("R003-9")),
    param("jobs", in_state("running", agent_id=None), "jobs_owner_state", marks=mark.rule("R000-68")),
    *(
        param("jobs", in_state(status, claimed_by="atlas"), "jobs_owner_state", marks=mark.rule("R003-9"))
        for status in FINAL
    ),
    param("jobs", {"finished_at": AT}, "jobs_terminal_finish", marks=mark.rule("R003-19")),
    *(
        param(
            "jobs", in_state(status, finished_at=None), "jobs_terminal_finish",
            marks=mark.rule("R003-19", "R003-37"),
        )
        for status in FINAL
    ),
    param("jobs", in_state("running", started_at=None), "jobs_running_has_start", marks=mark.rule("R000-70")),
    param("jobs", {"status": "scheduled"}, "jobs_scheduled_has_time", marks=mark.rule("R000-72")),
    *(
        param("jobs", in_state(status, next_attempt_at=AT), "jobs_retry_waits_queued", marks=mark.rule("R001-14"))
        for status in ("scheduled", "assigned", "running", "dead_letter")
    ),
    *(
        param("jobs", in_state(status, cancel_requested_at=AT), "jobs_cancel_never_requeued")
        for status in ("queued", "scheduled")
    ),
    param("jobs", {"parent_job_id": rows.job_id}, "jobs_parent_whole"),
    param("jobs", {"parent_kind": "copy"}, "jobs_parent_kind_known"),
    param("jobs", {"signing_secret_hash": "x"}, "jobs_signing_secret_hash_sha256"),
    param("jobs", {"tool": "x" * 101}, "jobs_tool_length"),
    param("jobs", {"repository": "x" * 501}, "jobs_repository_length"),
    param("jobs", {"affinity_key": "x" * 256}, "jobs_affinity_key_length"),
    param("jobs", {"idempotency_key": "x" * 256}, "jobs_idempotency_key_length"),
    param("jobs", {"artifacts_path": "x" * 1001}, "jobs_artifacts_path_length"),
    param("job_events", {"level": "debug"}, "job_events_level_known", marks=mark.rule("R001-19")),
    param("job_events", {"message": None}, "message", marks=mark.rule("R001-20")),
    param("job_events", {"message": ""}, "job_events_message_given", marks=mark.rule("R001-21")),
    param("job_events", {"message": "  "}, "job_events_message_given", marks=mark.rule("R001-21")),
    param("job_events", {"payload": ["a"]}, "job_events_payload_object", marks=mark.rule("R001-22")),
    param("job_events", {"job_id": JobId.new()}, "job_events_job_id_fkey", marks=mark.rule("R001-18")),
    param("job_results", {"result": ["a"]}, "job_results_result_object"),
    param("jobs", {"collection_id": JobId.new()}, "jobs_collection_id_fkey", marks=mark.rule("R000-132")),
)  # fmt: skip


@mark.parametrize(("table", "changes", "constraint"), REFUSED)
def test_a_row_that_breaks_a_rule_is_refused(team: Team, table: str, changes: Row, constraint: str) -> None:
    assert refused_by(team, adding(team, table, **changes)) == constraint


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


@mark.rule("R000-83")
def test_a_collection_waits_once_for_each_tool(team: Team) -> None:
    waiting = in_state("scheduled", collection_id=rows.collection_id(team), tool="photostats")
    rows.add_job(team, **waiting)

    other_tool = rows.add_job(team, **waiting | {"tool": "photo_pairing"})
    not_waiting = rows.add_job(team, **waiting | {"status": "queued"})
    again = refused_by(team, adding(team, "jobs", **waiting))

    assert again == "jobs_scheduled_uq"
    assert len({other_tool["id"], not_waiting["id"]}) == 2


ONLY_ONE = (
    param("lanes", ("key",), "lanes_key_uq"),
    param("jobs", ("id",), "jobs_pkey", marks=mark.rule("R003-1")),
    param("job_events", ("id",), "job_events_pkey", marks=mark.rule("R001-17")),
    param("job_results", ("job_id", "attempt"), "job_results_attempt_uq"),
    param("agent_lanes", ("agent_id", "lane_id"), "agent_lanes_pkey"),
)


@mark.parametrize(("table", "columns", "constraint"), ONLY_ONE)
def test_what_must_be_the_only_one_is_refused_again(
    team: Team, table: str, columns: tuple[str, ...], constraint: str
) -> None:
    first = ADD[table](team)

    same = {column: first[column] for column in columns}

    assert refused_by(team, adding(team, table, **same)) == constraint


@mark.parametrize(
    ("column", "value", "constraint"),
    [("idempotency_key", "k1", "jobs_idempotency_uq"), ("run_id", rows.run_id, "jobs_run_uq")],
)
def test_one_key_and_one_run_make_one_job(team: Team, column: str, value: object, constraint: str) -> None:
    first = rows.add_job(team, **{column: value})

    assert refused_by(team, adding(team, "jobs", **{column: first[column]})) == constraint


def test_a_job_that_still_waits_survives_the_pruning_of_its_parent(team: Team) -> None:
    """Retention deletes the finished parent; a scheduled refresh may wait longer than that."""
    parent = rows.add_job(team, **in_state("succeeded"))
    child = rows.add_job(team, **in_state("scheduled", parent_job_id=parent["id"], parent_kind="refresh"))

    team.execute("delete from jobs where id = %s", parent["id"])

    kept = team.stored("jobs", child)
    assert (kept["parent_job_id"], kept["parent_kind"], kept["status"]) == (None, "refresh", "scheduled")


@mark.rule("R001-16", "R001-24")
@mark.parametrize("change", ["update job_events set message = 'x'", "delete from job_events"])
def test_nobody_rewrites_what_happened(team: Team, change: str) -> None:
    event = rows.add_job_event(team)

    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="job_events is append-only"),
        team.connection.transaction(),
    ):
        team.execute(change)

    assert team.stored("job_events", event)["message"] == event["message"]


def test_a_jobs_story_goes_only_with_its_retention(team: Team) -> None:
    event = rows.add_job_event(team)
    delete = partial(team.execute, "delete from jobs where id = %s", event["job_id"])
    with pytest.raises(psycopg.errors.InsufficientPrivilege), team.connection.transaction():
        delete()

    team.execute("set local agent_console.retention = 'on'")
    delete()

    assert team.execute("select 1 from job_events where job_id = %s", event["job_id"]) == []


@mark.rule("R002-3")
def test_events_are_numbered_in_their_order_and_by_the_database_alone(team: Team) -> None:
    job = rows.job_id(team)
    events = [rows.add_job_event(team, job_id=job) for _ in range(3)]

    with pytest.raises(psycopg.errors.GeneratedAlways), team.connection.transaction():
        rows.add_job_event(team, job_id=job, seq=1)

    numbered = team.execute("select id from job_events where job_id = %s order by seq", job)
    assert [row["id"] for row in numbered] == [event["id"] for event in events]


def test_every_check_of_these_tables_is_tried(team: Team) -> None:
    assert rows.checks_of(team, *TABLES) <= {str(case.values[2]) for case in REFUSED}

"""What the schema itself refuses and keeps for lanes, jobs, their events, their results, and the duties."""

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pytest import mark, param

from agent_console.domain.ids import JobId
from tests.database import rows
from tests.database.job_states import in_state
from tests.database.rows import ADD, LATER, adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

TABLES = (
    "lanes", "job_events", "job_results", "queue_moves", "queue_counts", "queue_tallies", "duty_rounds",
    "schema_fits",
)  # fmt: skip


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
    param("job_events", {"level": "debug"}, "job_events_level_known", marks=mark.rule("R001-19")),
    param("job_events", {"message": None}, "message", marks=mark.rule("R001-20")),
    param("job_events", {"message": ""}, "job_events_message_given", marks=mark.rule("R001-21")),
    param("job_events", {"message": "  "}, "job_events_message_given", marks=mark.rule("R001-21")),
    param("job_events", {"payload": ["a"]}, "job_events_payload_object", marks=mark.rule("R001-22")),
    param("job_events", {"job_id": JobId.new()}, "job_events_job_id_fkey", marks=mark.rule("R001-18")),
    param("job_results", {"result": ["a"]}, "job_results_result_object"),
    param("duty_rounds", {"duty": " "}, "duty_rounds_duty_given"),
    param("duty_rounds", {"duty": "x" * 51}, "duty_rounds_duty_given"),
    param("duty_rounds", {"rounds": -1}, "duty_rounds_counts_whole"),
    param("duty_rounds", {"rows": -1}, "duty_rounds_counts_whole"),
    param("duty_rounds", {"failures": -1}, "duty_rounds_counts_whole"),
    param("duty_rounds", {"done_at": LATER, "seconds": 1.0}, "duty_rounds_done_whole"),
    param("duty_rounds", {"done_by": "db1:7"}, "duty_rounds_done_whole"),
    param("duty_rounds", {"done_at": LATER, "done_by": "db1:7"}, "duty_rounds_done_whole"),
    param("duty_rounds", {"failed_at": LATER}, "duty_rounds_failed_whole"),
    param("duty_rounds", {"error": "no space left"}, "duty_rounds_failed_whole"),
    param("schema_fits", {"revision": "newest"}, "schema_fits_revision_numbered"),
    param("jobs", {"collection_id": JobId.new()}, "jobs_collection_id_fkey", marks=mark.rule("R000-132")),
)  # fmt: skip


@mark.parametrize(("table", "changes", "constraint"), REFUSED)
def test_a_row_that_breaks_a_rule_is_refused(team: Team, table: str, changes: Row, constraint: str) -> None:
    assert refused_by(team, adding(team, table, **changes)) == constraint


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
    param("job_results", ("job_id", "attempt"), "job_results_attempt_uq"),
    param("queue_counts", ("lane_id", "status"), "queue_counts_pkey"),
    param("queue_tallies", ("came_from", "went_to"), "queue_tallies_pkey"),
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

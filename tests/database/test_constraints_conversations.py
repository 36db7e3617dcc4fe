"""What the schema itself refuses and keeps for threads, participants, messages, runs, routes and approvals."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pytest import mark, param

from agent_console.domain.ids import AgentId, ApprovalId, ThreadId, UserId
from agent_console.domain.states import RunStatus
from tests.database import rows
from tests.database.rows import ADD, adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

TABLES = (
    "threads", "thread_participants", "messages", "runs", "a2a_routes", "a2a_route_versions", "approvals",
    "approval_looks",
)  # fmt: skip
AT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "conversations") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def user_id(team: Team) -> object:
    return rows.add_user(team)["id"]


AGENT, PERSON = rows.agent_id, user_id
REJECTED: Row = {"state": "rejected", "decided_at": AT, "decided_by_user_id": PERSON, "decision_reason": "no"}

REFUSED = (
    param("threads", {"title": "x" * 501}, "threads_title_length"),
    param("threads", {"visibility": "public"}, "threads_visibility_known", marks=mark.rule("R002-17")),
    param("threads", {"created_by_user_id": UserId.new()}, "threads_created_by_user_id_fkey"),
    param(
        "thread_participants", {"participant_type": "system"}, "thread_participants_one_actor",
        marks=mark.rule("R002-24"),
    ),
    param(
        "thread_participants", {"agent_id": AGENT}, "thread_participants_one_actor", marks=mark.rule("R002-25")
    ),
    param(
        "thread_participants", {"user_id": None}, "thread_participants_one_actor", marks=mark.rule("R002-25")
    ),
    param(
        "thread_participants", {"participant_type": "agent"}, "thread_participants_one_actor",
        marks=mark.rule("R002-25"),
    ),
    param(
        "thread_participants", {"can_read": False, "can_write": True}, "thread_participants_implied_read",
        marks=mark.rule("R002-31"),
    ),
    param(
        "thread_participants", {"can_read": False, "can_share": True}, "thread_participants_implied_read",
        marks=mark.rule("R002-31"),
    ),
    param(
        "thread_participants", {"created_by_user_id": UserId.new()}, "thread_participants_created_by_user_id_fkey"
    ),
    param("messages", {"thread_id": ThreadId.new()}, "messages_thread_id_fkey", marks=mark.rule("R002-35")),
    param("messages", {"author_type": "robot"}, "messages_author_fits", marks=mark.rule("R002-36")),
    param("messages", {"author_agent_id": AGENT}, "messages_author_fits", marks=mark.rule("R002-37")),
    param("messages", {"author_user_id": None}, "messages_author_fits", marks=mark.rule("R002-37")),
    param(
        "messages", {"author_type": "agent", "author_agent_id": AGENT}, "messages_author_fits",
        marks=mark.rule("R002-38"),
    ),
    param(
        "messages", {"author_type": "agent", "author_user_id": None}, "messages_author_fits",
        marks=mark.rule("R002-38"),
    ),
    param("messages", {"author_type": "system"}, "messages_author_fits", marks=mark.rule("R002-39")),
    param(
        "messages", {"author_type": "system", "author_user_id": None, "author_agent_id": AGENT},
        "messages_author_fits", marks=mark.rule("R002-39"),
    ),
    param("messages", {"content": ""}, "messages_content_given", marks=mark.rule("R002-41")),
    param("messages", {"content": None}, "content", marks=mark.rule("R002-41")),
    param("messages", {"content": "ü" * 32_769}, "messages_content_size"),
    param("messages", {"payload": []}, "messages_payload_object", marks=mark.rule("R002-42")),
    param("messages", {"to_agent_ids": {}}, "messages_to_agent_ids_array"),
    param(
        "messages", {"author_type": "agent", "author_user_id": None, "author_agent_id": AGENT, "broadcast": True},
        "messages_only_people", marks=mark.rule("U002-29"),
    ),
    param(
        "messages", {"author_type": "system", "author_user_id": None, "intervention": True},
        "messages_only_people", marks=mark.rule("U002-27"),
    ),
    param("messages", {"idempotency_key": "x" * 256}, "messages_idempotency_key_length"),
    param("messages", {"run_id": AgentId.new()}, "messages_run_id_fkey", marks=mark.rule("R002-43")),
    param("runs", {"thread_id": ThreadId.new()}, "runs_thread_id_fkey", marks=mark.rule("R002-49")),
    param("runs", {"requested_by_type": "system"}, "runs_requested_by_type_known", marks=mark.rule("R002-50")),
    param("runs", {"requested_by_agent_id": AGENT}, "runs_requester_fits", marks=mark.rule("R002-51")),
    param("runs", {"requested_by_user_id": None}, "runs_requester_fits", marks=mark.rule("R002-51")),
    param("runs", {"requested_by_type": "agent"}, "runs_requester_fits", marks=mark.rule("R002-51")),
    param("runs", {"target_agent_id": None}, "target_agent_id", marks=mark.rule("R002-53")),
    param("runs", {"status": "canceled", "ended_at": AT}, "runs_status_known", marks=mark.rule("R002-55")),
    param("runs", {"ended_at": AT}, "runs_terminal_has_end", marks=mark.rule("R002-61")),
    *(
        param("runs", {"status": status}, "runs_terminal_has_end", marks=mark.rule("R002-61"))
        for status in ("succeeded", "failed", "cancelled", "timeout")
    ),
    param("runs", {"delegation_path": {}}, "runs_delegation_path_array"),
    param("runs", {"output_summary": []}, "runs_output_summary_object", marks=mark.rule("R002-63")),
    param("runs", {"idempotency_key": "x" * 256}, "runs_idempotency_key_length"),
    param("runs", {"request_digest": "x"}, "runs_request_digest_sha256"),
    param("a2a_routes", {"policy": "maybe"}, "a2a_routes_policy_known", marks=mark.rule("R002-70")),
    param("a2a_routes", {"version": 0}, "a2a_routes_version_positive"),
    param("a2a_routes", {"notes": "x" * 1001}, "a2a_routes_notes_length"),
    param("a2a_routes", {"from_agent_id": AgentId.new()}, "a2a_routes_from_agent_id_fkey"),
    param("a2a_route_versions", {"policy": "maybe"}, "a2a_route_versions_policy_known"),
    param("approvals", {"delegation_path": {}}, "approvals_delegation_path_array"),
    param("approvals", {"envelope": Jsonb("x")}, "approvals_envelope_object"),
    param("approvals", {"digest": "x"}, "approvals_digest_sha256"),
    param("approvals", {"request_digest": "x"}, "approvals_request_digest_sha256"),
    param("approvals", {"state": "open", "decided_at": AT}, "approvals_state_known"),
    param("approvals", {"decided_at": AT}, "approvals_decided_has_time"),
    param("approvals", {"state": "expired"}, "approvals_decided_has_time"),
    param("approvals", {"state": "approved", "decided_at": AT}, "approvals_person_decides"),
    param("approvals", REJECTED | {"decided_by_user_id": None}, "approvals_person_decides"),
    param("approvals", REJECTED | {"decision_reason": None}, "approvals_rejection_has_reason"),
    param("approvals", REJECTED | {"run_id": rows.run_id}, "approvals_run_only_approved"),
    param("approval_looks", {"session": " "}, "approval_looks_session_given"),
    param("approval_looks", {"session": "x" * 65}, "approval_looks_session_given"),
    param("approval_looks", {"approval_id": ApprovalId.new()}, "approval_looks_approval_id_fkey"),
    param("approval_looks", {"user_id": UserId.new()}, "approval_looks_user_id_fkey"),
)  # fmt: skip


@mark.parametrize(("table", "changes", "constraint"), REFUSED)
def test_a_row_that_breaks_a_rule_is_refused(team: Team, table: str, changes: Row, constraint: str) -> None:
    assert refused_by(team, adding(team, table, **changes)) == constraint


KEPT = (
    param("threads", {"visibility": "shared"}, marks=mark.rule("R002-17")),
    param(
        "thread_participants", {"participant_type": "agent", "user_id": None, "agent_id": AGENT},
        marks=mark.rule("R002-24", "R002-32"),
    ),
    param(
        "messages", {"author_type": "agent", "author_user_id": None, "author_agent_id": AGENT},
        marks=mark.rule("R002-36", "R002-38"),
    ),
    param("messages", {"author_type": "system", "author_user_id": None}, marks=mark.rule("R002-36", "R002-39")),
    param(
        "runs",
        {"requested_by_type": "agent", "requested_by_user_id": None, "requested_by_agent_id": AGENT},
        marks=mark.rule("R002-50", "R002-51"),
    ),
    *(
        param("a2a_routes", {"policy": policy}, marks=mark.rule("R002-70"))
        for policy in ("allowed", "blocked", "requires_human_approval")
    ),
    param("approvals", REJECTED),
    param("approvals", REJECTED | {"state": "approved", "run_id": rows.run_id}),
    *(param("approvals", {"state": state, "decided_at": AT}) for state in ("expired", "withdrawn", "superseded")),
)  # fmt: skip


@mark.parametrize(("table", "changes"), KEPT)
def test_what_the_rules_allow_is_kept(team: Team, table: str, changes: Row) -> None:
    row = ADD[table](team, **changes)

    kept = team.stored(table, row)

    assert {column: kept[column] for column in changes} == {column: row[column] for column in changes}


@mark.rule("R002-55")
def test_every_status_of_a_run_is_stored_and_cancelled_is_spelled_one_way(team: Team) -> None:
    unfinished = (RunStatus.QUEUED, RunStatus.RUNNING)

    kept = [
        team.stored("runs", rows.add_run(team, status=str(status), ended_at=None if status in unfinished else AT))
        for status in RunStatus
    ]

    listed = ["queued", "running", "succeeded", "failed", "cancelled", "timeout"]
    assert [row["status"] for row in kept] == listed
    assert RunStatus("canceled") is RunStatus.CANCELLED


ONLY_ONE = (
    param("threads", ("id",), "threads_pkey", marks=mark.rule("R002-14")),
    param("thread_participants", ("id",), "thread_participants_pkey", marks=mark.rule("R002-22")),
    param(
        "thread_participants", ("thread_id", "user_id"), "thread_participants_human_uq",
        marks=mark.rule("R002-99"),
    ),
    param("messages", ("id",), "messages_pkey", marks=mark.rule("R002-33")),
    param("runs", ("id",), "runs_pkey", marks=mark.rule("R002-47")),
    param("a2a_routes", ("id",), "a2a_routes_pkey", marks=mark.rule("R002-67")),
    param("a2a_routes", ("from_agent_id", "to_agent_id"), "a2a_routes_pair_uq", marks=mark.rule("R002-112")),
    param("a2a_route_versions", ("route_id", "version"), "a2a_route_versions_pkey"),
    param("a2a_route_versions", ("from_agent_id", "to_agent_id", "version"), "a2a_route_versions_pair_uq"),
    param("approval_looks", ("approval_id",), "approval_looks_pkey"),
)  # fmt: skip


@mark.parametrize(("table", "columns", "constraint"), ONLY_ONE)
def test_what_must_be_the_only_one_is_refused_again(
    team: Team, table: str, columns: tuple[str, ...], constraint: str
) -> None:
    first = ADD[table](team)

    same = {column: first[column] for column in columns}

    assert refused_by(team, adding(team, table, **same)) == constraint


@mark.rule("R002-100")
def test_no_agent_is_twice_in_a_thread(team: Team) -> None:
    row = rows.add_participant(team, participant_type="agent", user_id=None, agent_id=AGENT)

    again = {name: row[name] for name in ("thread_id", "participant_type", "user_id", "agent_id")}

    assert refused_by(team, adding(team, "thread_participants", **again)) == "thread_participants_agent_uq"


@mark.parametrize("table", ["runs", "approvals"])
def test_a_request_with_the_same_key_is_the_same_request(team: Team, table: str) -> None:
    ADD[table](team, idempotency_key="k1")

    assert refused_by(team, adding(team, table, idempotency_key="k1")) == f"{table}_idempotency_uq"


def test_a_message_with_the_same_key_is_the_same_message_of_its_thread_only(team: Team) -> None:
    first = rows.add_message(team, idempotency_key="k1")
    rows.add_message(team, idempotency_key="k1")

    again = adding(team, "messages", thread_id=first["thread_id"], idempotency_key="k1")

    assert refused_by(team, again) == "messages_idempotency_uq"


@mark.rule("R002-73")
def test_no_route_leads_from_an_agent_to_itself(team: Team) -> None:
    agent = rows.agent_id(team)

    refusal = refused_by(team, adding(team, "a2a_routes", from_agent_id=agent, to_agent_id=agent))

    assert refusal == "a2a_routes_no_self"


@mark.rule("R002-23", "R002-35", "R002-49")
def test_a_thread_takes_its_participants_messages_and_runs_with_it(team: Team) -> None:
    thread = rows.thread_id(team)
    run = rows.add_run(team, thread_id=thread)
    rows.add_participant(team, thread_id=thread)
    rows.add_message(team, thread_id=thread, run_id=run["id"])
    rows.add_approval(team, thread_id=thread, parent_run_id=run["id"])

    team.execute("delete from threads where id = %s", thread)
    team.execute("set constraints all immediate")

    left = {
        table: team.execute(f"select 1 from {table} where thread_id = %s", thread)
        for table in ("thread_participants", "messages", "runs", "approvals")
    }
    assert not any(left.values()), left


LINKS = (
    param("messages", "run_id", "runs", rows.run_id, marks=mark.rule("R002-43")),
    param("runs", "input_message_id", "messages", rows.message_id, marks=mark.rule("R002-56")),
    param("runs", "parent_run_id", "runs", rows.run_id, marks=mark.rule("R002-58")),
    param("approvals", "parent_run_id", "runs", rows.run_id),
    param("approvals", "input_message_id", "messages", rows.message_id),
)


@mark.parametrize(("table", "column", "target", "make"), LINKS)
def test_a_link_is_emptied_when_what_it_names_goes(
    team: Team, table: str, column: str, target: str, make: object
) -> None:
    row = ADD[table](team, **{column: make})

    team.execute(f"delete from {target} where id = %s", row[column])

    kept = team.stored(table, row)
    assert (kept[column], kept["team_id"]) == (None, team.team_id)


@mark.rule("R002-43")
def test_a_message_may_be_written_before_its_run(team: Team) -> None:
    run = AgentId.new()
    message = rows.add_message(team, run_id=run)

    rows.add_run(team, id=run, thread_id=message["thread_id"], input_message_id=message["id"])
    team.execute("set constraints all immediate")

    assert team.stored("messages", message)["run_id"] == run


@mark.rule("R002-53")
def test_an_agent_with_runs_is_not_removed(team: Team) -> None:
    run = rows.add_run(team)

    refusal = refused_by(team, partial(team.execute, "delete from agents where id = %s", run["target_agent_id"]))

    assert refusal == "runs_target_agent_id_fkey"


@mark.rule("R002-68", "R002-69")
@mark.parametrize("end", ["from_agent_id", "to_agent_id"])
def test_a_route_goes_with_either_of_its_agents(team: Team, end: str) -> None:
    route = rows.add_route(team)

    team.execute("delete from agents where id = %s", route[end])

    assert team.execute("select 1 from a2a_routes where id = %s", route["id"]) == []


def test_a_participating_agent_goes_with_its_row(team: Team) -> None:
    row = rows.add_participant(team, participant_type="agent", user_id=None, agent_id=AGENT)

    team.execute("delete from agents where id = %s", row["agent_id"])

    assert team.execute("select 1 from thread_participants where id = %s", row["id"]) == []


@mark.rule("R002-3", "R002-45", "R002-48")
@mark.parametrize("table", ["messages", "runs"])
def test_two_threads_share_one_numbering_that_only_the_database_gives(team: Team, table: str) -> None:
    threads = [rows.thread_id(team), rows.thread_id(team)]
    written = [ADD[table](team, thread_id=threads[turn % 2])["id"] for turn in range(6)]

    with pytest.raises(psycopg.errors.GeneratedAlways), team.connection.transaction():
        ADD[table](team, seq=1)

    everything = team.execute(f"select id from {table} order by seq")
    of_one = team.execute(f"select id from {table} where thread_id = %s order by seq", threads[1])
    assert [row["id"] for row in everything] == written
    assert [row["id"] for row in of_one] == written[1::2]


def test_every_check_of_these_tables_is_tried(team: Team) -> None:
    tried = {str(case.values[2]) for case in REFUSED} | {"a2a_routes_no_self"}
    also_in_fits = {"thread_participants_participant_type_known", "messages_author_type_known"}

    assert rows.checks_of(team, *TABLES) - tried == also_in_fits

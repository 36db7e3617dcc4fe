"""The tables as the rules name them: columns, defaults, what may stay empty, and what is read back."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address
from unittest.mock import ANY

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pytest import mark, param

from agent_console.database.tables import metadata
from agent_console.domain.ids import AgentId
from tests.database import rows
from tests.database.endless_times import AT_ONCE
from tests.database.rows import ADD
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "schema") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def now(team: Team, ahead: timedelta = timedelta()) -> object:
    (clock,) = team.execute("select now() + %s as at", ahead)
    return clock["at"]


def tomorrow(team: Team) -> object:
    return now(team, timedelta(hours=24))


BORN: Row = {"created_at": now}
BOTH: Row = BORN | {"updated_at": now}

# What a table fills in by itself, and which of its columns may stay empty.
SHAPES = (
    param("teams", BOTH, "pause_mode pause_reason paused_at paused_by_user_id"),
    param(
        "users", BOTH | {"kind": "human", "is_active": True},
        "role subject email last_seen_at created_by_user_id updated_by_user_id", marks=mark.rule("R004-40"),
    ),
    param("operator_tokens", BORN, "name expires_at revoked_at last_used_at"),
    param("settings", {"updated_at": now}, "updated_by_user_id"),
    param(
        "agents",
        BOTH | {"connector_ref": "pull", "profile": {}, "hosted": False, "max_concurrent_jobs": 1,
                "over_limit": False, "cpu_millicores": 500, "memory_mb": 512, "runtime_version": "latest",
                "system_user_kind": "system"},
        "updated_by_user_id hostname os_info version binary_checksum previous_key_hash previous_key_ends_at"
        " drained_at drain_reason drained_by_user_id revoked_at revocation_reason revoked_by_user_id deleted_at",
        marks=mark.rule(
            "R000-10", "R000-11", "R000-12", "R000-13", "R000-14", "R000-15", "R000-21", "R000-22", "R000-23",
            "R000-24", "R000-27", "R002-6", "R002-9", "R002-10", "R002-12", "R004-29", "R004-30", "R004-31",
            "U004-4",
        ),
    ),
    param(
        "agent_runtime", {"presence": "unknown", "capabilities": [], "metrics": {}},
        "error_message last_heartbeat_at heard_minute lifecycle lifecycle_changed_at last_used_at"
        " started_at",
        marks=mark.rule("R000-19", "R002-7", "R002-9"),
    ),
    param("pool_counts", {"online": 0, "error": 0, "offline": 0, "unknown": 0}, ""),
    param(
        "registration_tokens", BORN | {"is_used": False, "expires_at": tomorrow},
        "name used_by_agent_id used_at client_nonce_hash revoked_at revoked_by_user_id",
        marks=mark.rule(
            "R000-52", "R000-53", "R000-54", "R000-55", "R000-56", "R000-57", "R000-58", "R000-59", "R000-65"
        ),
    ),
    param(
        "worker_tokens", BOTH | {"is_active": True},
        "description allowed_repositories allowed_job_types capabilities expires_at updated_by_user_id",
        marks=mark.rule("R001-2", "R001-3", "R001-4", "R001-5", "R001-6", "R001-7", "R001-8"),
    ),
    param(
        "connectors", BOTH | {"credential_location": "server", "config": {}},
        "credentials_encrypted credentials_key_id updated_by_user_id deleted_at", marks=mark.rule("R000-100"),
    ),
    param("agent_connectors", {"reported_at": now}, ""),
    param(
        "collections", BOTH | {"auto_refresh": True},
        "location tool connector_id bound_agent_id refresh_interval_hours last_refresh_at next_refresh_at"
        " updated_by_user_id deleted_at", marks=mark.rule("R000-109", "R000-110", "R000-111"),
    ),
    param("sessions", BORN | {"status": 1}, "closed_at close_reason", marks=mark.rule("R004-36", "R004-37")),
    param(
        "threads", BOTH | {"visibility": "private"}, "title updated_by_user_id archived_at",
        marks=mark.rule("R002-15", "R002-16", "R002-18"),
    ),
    param(
        "thread_participants",
        BORN | {"can_read": True, "can_write": False, "can_share": False, "thread_archived": False},
        "user_id agent_id created_by_user_id", marks=mark.rule("R002-27", "R002-28", "R002-29", "R002-30"),
    ),
    param(
        "messages",
        BORN | {"seq": ANY, "payload": {}, "to_agent_ids": [], "broadcast": False, "intervention": False},
        "author_user_id author_agent_id run_id idempotency_key",
        marks=mark.rule("R002-41", "R002-42", "R002-43", "R002-44"),
    ),
    param(
        "runs", BOTH | {"seq": ANY, "status": "queued", "delegation_path": [], "output_summary": {}},
        "requested_by_user_id requested_by_agent_id input_message_id trace_id parent_run_id idempotency_key"
        " request_digest route_version deadline_at started_at ended_at error_code error_message",
        marks=mark.rule("R002-53", "R002-54", "R002-56", "R002-58", "R002-60", "R002-63", "R002-64"),
    ),
    param(
        "a2a_routes", BOTH | {"version": 1}, "notes created_by_user_id updated_by_user_id",
        marks=mark.rule("R002-71"),
    ),
    param("a2a_route_versions", {"removed": False, "changed_at": now}, "notes reason changed_by_user_id"),
    param(
        "approvals", BORN | {"delegation_path": [], "state": "pending"},
        "parent_run_id input_message_id decided_by_user_id decided_at decision_reason run_id idempotency_key"
        " request_digest",
    ),
    param("approval_looks", {"begun_at": now, "seen_at": now}, ""),
    param("lanes", BORN | {"required_capabilities": []}, "bound_agent_id job_type repository connector_id"),
    param(
        "jobs",
        BOTH | {"status": "queued", "priority": 0, "required_capabilities": [], "attempt": 1, "max_attempts": 3,
                "max_run_seconds": 14400, "signed": False, "look_at": AT_ONCE},
        "tool repository collection_id connector_id bound_agent_id affinity_key idempotency_key agent_id"
        " claimed_by assigned_at started_at finished_at lease_expires_at lease_seconds scheduled_for"
        " next_attempt_at look_at progress result_summary error_code error_message artifacts_path parent_job_id"
        " parent_kind run_id signing_nonce signing_secret_hash cancel_requested_at cancel_requested_by_user_id"
        " cancel_reason created_by_user_id requested_by_user_id updated_by_user_id",
        marks=mark.rule(
            "R000-67", "R000-72", "R001-14", "R003-2", "R003-5", "R003-16", "R003-17", "R003-40", "R003-41",
            "R003-42",
        ),
    ),
    param(
        "job_events", BORN | {"seq": ANY, "level": "info"}, "payload attempt created_by_user_id",
        marks=mark.rule("R001-20", "R001-22", "R001-23"),
    ),
    param("job_results", BORN | {"result": {}}, "signature"),
    param(
        "audit_log", BORN | {"seq": ANY, "xid": ANY, "metadata": {}, "form": 1},
        "actor_user_id actor_agent_id thread_id run_id decision reason ip user_agent",
        marks=mark.rule("R002-84", "R002-86", "R002-87", "R002-89", "R002-91"),
    ),
    param("audit_seals", {"sealed_at": now}, ""),
    param("audit_heads", {"sealed_at": now, "since_seq": 0}, ""),
    param("audit_checkpoints", BORN, ""),
    param("queue_moves", {"id": ANY, "waited_seconds": 0}, "lane_id came_from went_to"),
    param("queue_counts", {}, ""),
    param("queue_tallies", {}, ""),
    param(
        "duty_rounds", {"rounds": 0, "rows": 0, "failures": 0}, "done_at done_by seconds failed_at error",
    ),
    param("schema_fits", {"since": now}, ""),
)  # fmt: skip


@mark.parametrize(("table", "filled_in", "optional"), SHAPES)
def test_what_is_not_given_is_filled_in_or_empty(team: Team, table: str, filled_in: Row, optional: str) -> None:
    given = ADD[table](team)

    kept = team.stored(table, given)

    defaults = {name: value(team) if callable(value) else value for name, value in filled_in.items()}
    given = {name: value.obj if isinstance(value, Jsonb) else value for name, value in given.items()}
    assert kept == dict.fromkeys(optional.split()) | defaults | given
    assert rows.required_columns(team, table) == set(kept) - set(optional.split())


AT = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
HASH = "0123456789abcdef" * 4
LIST = ["git", "tool:photostats:1.2.3"]

BY_TYPE: Mapping[str, object] = {
    "text": "Žluťoučký kůň, 馬, 🐎",
    "timestamp with time zone": AT,
    "integer": 7,
    "bigint": 7_000_000_000,
    "smallint": 7,
    "double precision": 0.1,
    "boolean": True,
    "jsonb": {"a": [1, None, "ü"]},
    "bytea": bytes(range(32)),
    "inet": ip_address("2001:db8::7"),
    "xid8": "7",
    "date": date(2026, 3, 1),
}
BY_NAME: Mapping[str, Callable[[Team], object]] = {
    "user_id": lambda team: rows.add_user(team)["id"],
    "agent_id": rows.agent_id,
    "connector_id": rows.connector_id,
    "collection_id": rows.collection_id,
    "thread_id": rows.thread_id,
    "message_id": rows.message_id,
    "run_id": rows.run_id,
    "lane_id": rows.lane_id,
    "job_id": rows.job_id,
    "approval_id": lambda team: rows.add_approval(team)["id"],
}
ONLY_BY_THE_DATABASE = {"system_user_kind", "heard_minute", "xid"}

# What the rules leave no free choice of.
WHOLE = (
    param("teams", {"slug": "whole", "pause_mode": "drain"}),
    param("users", {"kind": "human", "role": "viewer"}, marks=mark.rule("R004-38", "R004-39", "R004-40")),
    param("operator_tokens", {"token_hash": HASH}),
    param("settings", {}),
    param(
        "agents",
        {"system_user_id": lambda team: rows.add_system_user(team)["id"], "api_key_hash": HASH,
         "previous_key_hash": HASH, "binary_checksum": HASH, "cpu_millicores": 700, "memory_mb": 700},
        marks=mark.rule("R002-12", "R004-21", "R004-22", "R004-23", "R004-25", "R004-26", "R004-27"),
    ),
    param("agent_runtime", {"presence": "error", "capabilities": LIST}, marks=mark.rule("R004-28")),
    param("pool_counts", {}),
    param(
        "registration_tokens",
        {"token_hash": HASH, "client_nonce_hash": HASH, "created_at": AT - timedelta(hours=24)},
    ),
    param(
        "worker_tokens",
        {"token_hash": HASH, "allowed_repositories": LIST, "allowed_job_types": LIST, "capabilities": LIST},
        marks=mark.rule("R001-1", "R001-4"),
    ),
    param("connectors", {"type": "smb", "credential_location": "server"}),
    param("agent_connectors", {}),
    param("collections", {"type": "local"}),
    param("sessions", {"status": 2}, marks=mark.rule("R004-32", "R004-33", "R004-34", "R004-36", "R004-37")),
    param("threads", {"visibility": "shared"}, marks=mark.rule("R002-14", "R002-15", "R002-18", "R002-21")),
    param("thread_participants", {"participant_type": "human", "agent_id": None}, marks=mark.rule("R002-22")),
    param(
        "messages", {"author_type": "human", "author_agent_id": None, "to_agent_ids": LIST},
        marks=mark.rule("R002-33", "R002-41", "R002-42", "R002-44"),
    ),
    param(
        "runs",
        {"requested_by_type": "human", "requested_by_agent_id": None, "status": "failed", "delegation_path": LIST,
         "request_digest": HASH},
        marks=mark.rule("R002-47", "R002-60", "R002-61", "R002-63", "R002-64"),
    ),
    param("a2a_routes", {"policy": "blocked"}, marks=mark.rule("R002-67", "R002-71")),
    param("a2a_route_versions", {"policy": "blocked"}),
    param("approvals", {"delegation_path": LIST, "digest": HASH, "request_digest": HASH, "state": "approved"}),
    param("approval_looks", {}),
    param("lanes", {"key": HASH, "required_capabilities": LIST}),
    param(
        "jobs",
        {"status": "running", "required_capabilities": LIST, "finished_at": None, "next_attempt_at": None,
         "parent_kind": "retry", "signing_secret_hash": HASH},
        marks=mark.rule("R003-1", "R003-7", "R003-11", "R003-13", "R003-15", "R003-16", "R003-17"),
    ),
    param("job_events", {"level": "warn"}, marks=mark.rule("R001-17", "R001-23")),
    param("job_results", {}),
    param(
        "audit_log",
        {"actor_type": "human", "actor_agent_id": None, "action": "run.create", "decision": "block",
         "created_at": now},
        marks=mark.rule("R002-80", "R002-84", "R002-87", "R002-88", "R002-89", "R002-91"),
    ),
    param("audit_seals", {}),
    param("audit_heads", {}),
    param("audit_checkpoints", {"first_position": 1}),
    param("queue_moves", {}),
    param("queue_counts", {}),
    param("queue_tallies", {}),
    param("duty_rounds", {}),
    param("schema_fits", {"revision": "0001"}),
)  # fmt: skip


def _value(team: Team, column: str, kind: str) -> object:
    if kind != "uuid":
        return BY_TYPE[kind]
    make = next((make for name, make in BY_NAME.items() if column.endswith(name)), None)
    return make(team) if make else AgentId.new()


@mark.rule("R004-73")
@mark.parametrize(("table", "chosen"), WHOLE)
def test_a_whole_row_is_read_back_as_it_was_written(team: Team, table: str, chosen: Row) -> None:
    columns = team.execute(
        "select attname::text as name, format_type(atttypid, atttypmod) as kind from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 and attidentity = ''",
        table,
    )
    free = {str(row["name"]): str(row["kind"]) for row in columns if row["name"] not in ONLY_BY_THE_DATABASE}
    row: Row = {} if table in rows.OF_NO_TEAM else {"team_id": team.team_id}
    row |= {name: _value(team, name, kind) for name, kind in free.items() if name not in {*row, *chosen}}

    given = team.insert(table, row | chosen)

    kept = team.stored(table, given)
    assert {name: kept[name] for name in given} == given
    assert given.keys() == free.keys()


def test_no_table_is_forgotten() -> None:
    named = [[case.values[0] for case in cases] for cases in (SHAPES, WHOLE)]

    assert named == [list(ADD), list(ADD)]
    assert set(ADD) == set(metadata.tables)


def test_every_name_is_told_in_full(database: str) -> None:
    """PostgreSQL cuts a name after 63 bytes, and a cut name is found by nobody."""
    with psycopg.connect(database) as connection:
        cut = connection.execute(
            "select relname from pg_class where length(relname) >= 63"
            " union all select conname from pg_constraint where length(conname) >= 63"
        ).fetchall()

    assert not cut

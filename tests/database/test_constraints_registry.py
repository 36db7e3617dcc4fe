"""What the schema itself refuses, requires and fills in for teams, people, agents, tokens, storage, sessions."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from psycopg.types.json import Jsonb
from pytest import mark, param

from agent_console.domain.ids import AgentId, TeamId, UserId
from tests.database import rows
from tests.database.rows import ADD, adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

TABLES = (
    "teams", "users", "operator_tokens", "settings", "agents", "agent_runtime", "pool_counts",
    "registration_tokens", "worker_tokens", "connectors", "agent_connectors", "collections", "sessions",
)  # fmt: skip
AT = datetime(2026, 3, 1, 3, 0, 0, 123000, tzinfo=UTC)
HASH = "0123456789abcdef" * 4
NO_HASHES = ("0" * 63, "0" * 65, "g" * 64, "A" * 64, "agt_key_secret")


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "registry") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def long(length: int) -> str:
    return "x" * length


REFUSED = (
    param("teams", {"slug": "North"}, "teams_slug_form"),
    param("teams", {"name": " "}, "teams_name_given"),
    param("teams", {"pause_mode": "stop", "paused_at": AT, "pause_reason": "x"}, "teams_pause_mode_known"),
    param("teams", {"pause_mode": "drain", "paused_at": AT}, "teams_pause_whole"),
    param("teams", {"pause_mode": "drain", "pause_reason": "disk swap"}, "teams_pause_whole"),
    param("users", {"kind": "robot"}, "users_kind_fits"),
    param("users", {"role": "root"}, "users_role_known"),
    param("users", {"email": None}, "users_kind_fits", marks=mark.rule("R004-39")),
    param("users", {"email": " "}, "users_email_given", marks=mark.rule("R004-39")),
    param("users", {"role": None}, "users_kind_fits"),
    param("users", {"kind": "system", "role": "viewer"}, "users_kind_fits"),
    param("users", {"full_name": ""}, "users_full_name_given"),
    param("operator_tokens", {"token_hash": "opt_key_secret"}, "operator_tokens_token_hash_sha256"),
    param("operator_tokens", {"name": long(101)}, "operator_tokens_name_length"),
    param("operator_tokens", {"token_prefix": long(21)}, "operator_tokens_token_prefix_length"),
    param("settings", {"name": ""}, "settings_name_given"),
    param("agents", {"name": long(256)}, "agents_name_given", marks=mark.rule("R000-13", "R000-45")),
    param("agents", {"name": ""}, "agents_name_given", marks=mark.rule("R000-45")),
    param("agents", {"name": "   "}, "agents_name_given", marks=mark.rule("R000-45")),
    param("agents", {"worker_id": ""}, "agents_worker_id_given"),
    param("agents", {"hostname": long(256)}, "agents_hostname_length", marks=mark.rule("R000-14")),
    param("agents", {"os_info": long(256)}, "agents_os_info_length", marks=mark.rule("R000-15")),
    param("agents", {"version": long(51)}, "agents_version_length", marks=mark.rule("R000-23")),
    param("agents", {"api_key_prefix": long(21)}, "agents_api_key_prefix_length", marks=mark.rule("R000-22")),
    param("agents", {"previous_key_hash": "x", "previous_key_ends_at": AT}, "agents_previous_key_hash_sha256"),
    param("agents", {"previous_key_hash": HASH}, "agents_previous_key_whole"),
    param("agents", {"connector_ref": " "}, "agents_connector_ref_given"),
    param("agents", {"profile": ["a"]}, "agents_profile_object", marks=mark.rule("R002-9")),
    param("agents", {"cpu_millicores": 99}, "agents_cpu_bounds", marks=mark.rule("R004-29", "U004-4")),
    param("agents", {"cpu_millicores": 4001}, "agents_cpu_bounds", marks=mark.rule("R004-29", "U004-4")),
    param("agents", {"memory_mb": 127}, "agents_memory_bounds", marks=mark.rule("R004-30", "U004-4")),
    param("agents", {"memory_mb": 8193}, "agents_memory_bounds", marks=mark.rule("R004-30", "U004-4")),
    param("agents", {"runtime_version": ""}, "agents_runtime_version_given"),
    param("agents", {"max_concurrent_jobs": 0}, "agents_concurrency_bounds"),
    param("agents", {"revoked_at": AT}, "agents_revoked_needs_reason", marks=mark.rule("R000-49")),
    param(
        "agents", {"revoked_at": AT, "revocation_reason": " "}, "agents_revoked_needs_reason",
        marks=mark.rule("R000-49"),
    ),
    param("agent_runtime", {"presence": "sleepy"}, "agent_runtime_presence_known", marks=mark.rule("R000-47")),
    param("agent_runtime", {"presence": "ONLINE"}, "agent_runtime_presence_known", marks=mark.rule("R000-133")),
    param("agent_runtime", {"lifecycle": 0}, "agent_runtime_lifecycle_known", marks=mark.rule("R004-24")),
    param("agent_runtime", {"lifecycle": 8}, "agent_runtime_lifecycle_known", marks=mark.rule("R004-24")),
    param(
        "agent_runtime", {"presence": "online", "error_message": "disk full"}, "agent_runtime_error_only_in_error",
        marks=mark.rule("R000-17"),
    ),
    param("agent_runtime", {"presence": "online"}, "agent_runtime_living_heard"),
    param("agent_runtime", {"presence": "error"}, "agent_runtime_living_heard"),
    param(
        "agent_runtime", {"capabilities": {}}, "agent_runtime_capabilities_array",
        marks=mark.rule("R000-33", "R000-48"),
    ),
    param("agent_runtime", {"metrics": []}, "agent_runtime_metrics_object"),
    param("pool_counts", {"shard": 16}, "pool_counts_shard_bounds"),
    param(
        "registration_tokens", {"name": long(101)}, "registration_tokens_name_length",
        marks=mark.rule("R000-55"),
    ),
    param("registration_tokens", {"token_prefix": long(21)}, "registration_tokens_token_prefix_length"),
    param("registration_tokens", {"client_nonce_hash": "x"}, "registration_tokens_client_nonce_hash_sha256"),
    param("registration_tokens", {"is_used": True}, "registration_tokens_use_whole", marks=mark.rule("R000-57")),
    param(
        "registration_tokens", {"used_by_agent_id": rows.agent_id, "used_at": AT}, "registration_tokens_use_whole",
        marks=mark.rule("R000-57"),
    ),
    param(
        "registration_tokens", {"created_at": AT, "expires_at": AT + timedelta(minutes=59)},
        "registration_tokens_life", marks=mark.rule("U000-48"),
    ),
    param(
        "registration_tokens", {"created_at": AT, "expires_at": AT + timedelta(hours=168, seconds=1)},
        "registration_tokens_life", marks=mark.rule("U000-48"),
    ),
    param("worker_tokens", {"worker_id": " "}, "worker_tokens_worker_id_given", marks=mark.rule("R001-2")),
    param("worker_tokens", {"token_prefix": long(21)}, "worker_tokens_token_prefix_length"),
    param("worker_tokens", {"description": long(501)}, "worker_tokens_description_length"),
    param("connectors", {"name": ""}, "connectors_name_given"),
    param("connectors", {"type": "ftp"}, "connectors_type_known"),
    param("connectors", {"credential_location": "SERVER"}, "connectors_credential_location_known"),
    param(
        "connectors", {"credential_location": "agent", "credentials_encrypted": b"x"},
        "connectors_credentials_only_on_server", marks=mark.rule("R000-102"),
    ),
    param(
        "connectors", {"credential_location": "pending", "credentials_key_id": "k1"},
        "connectors_credentials_only_on_server",
    ),
    param("connectors", {"config": []}, "connectors_config_object"),
    param("collections", {"name": ""}, "collections_name_given"),
    param("collections", {"type": "ftp"}, "collections_type_known"),
    param("collections", {"type": "local"}, "collections_binding", marks=mark.rule("R000-118")),
    param(
        "collections", {"type": "s3", "bound_agent_id": rows.agent_id}, "collections_binding",
        marks=mark.rule("R000-115"),
    ),
    param(
        "collections", {"type": "gcs", "bound_agent_id": rows.agent_id}, "collections_binding",
        marks=mark.rule("R000-116"),
    ),
    param("collections", {"refresh_interval_hours": 0}, "collections_interval", marks=mark.rule("R000-120")),
    param("sessions", {"status": 0}, "sessions_status_known", marks=mark.rule("R004-35")),
    param("sessions", {"status": 3}, "sessions_status_known", marks=mark.rule("R004-35")),
    param("sessions", {"status": 2}, "sessions_closed_has_time", marks=mark.rule("R004-37")),
    param("sessions", {"closed_at": AT}, "sessions_closed_has_time", marks=mark.rule("R004-37")),
    param(
        "agents", {"created_by_user_id": UserId.new()}, "agents_created_by_user_id_fkey",
        marks=mark.rule("R000-42"),
    ),
    param("agents", {"team_id": TeamId.new(), "system_user_id": UserId.new()}, "agents_team_id_fkey"),
    param(
        "agents", {"system_user_id": lambda team: rows.add_user(team)["id"]}, "agents_system_user_id_fkey",
        marks=mark.rule("R000-41"),
    ),
    param("sessions", {"agent_id": AgentId.new()}, "sessions_agent_id_fkey", marks=mark.rule("R004-71")),
)  # fmt: skip


@mark.parametrize(("table", "changes", "constraint"), REFUSED)
def test_a_row_that_breaks_a_rule_is_refused(team: Team, table: str, changes: Row, constraint: str) -> None:
    assert refused_by(team, adding(team, table, **changes)) == constraint


HASHED = (
    param("agents", "api_key_hash", marks=mark.rule("R000-21", "R000-46")),
    param("agents", "binary_checksum", marks=mark.rule("R000-24")),
    param("operator_tokens", "token_hash"),
    param("registration_tokens", "token_hash", marks=mark.rule("R000-54")),
    param("worker_tokens", "token_hash", marks=mark.rule("R001-3")),
)


@mark.parametrize(("table", "column"), HASHED)
def test_only_a_sha256_is_stored_where_a_hash_belongs(team: Team, table: str, column: str) -> None:
    refusals = {refused_by(team, adding(team, table, **{column: value})) for value in NO_HASHES}

    ADD[table](team, **{column: HASH})

    assert refusals == {f"{table}_{column}_sha256"}


CLEAN_LISTS = (
    param("allowed_repositories", marks=mark.rule("R001-5", "R001-11")),
    param("allowed_job_types", marks=mark.rule("R001-6", "R001-11")),
    param("capabilities", marks=mark.rule("R001-7", "R001-11")),
)


@mark.parametrize("column", CLEAN_LISTS)
def test_a_workers_list_is_absent_empty_or_clean(team: Team, column: str) -> None:
    unclean = ([""], [" git "], ["git", "git"], [1], [None], {"git": 1}, Jsonb("git"), Jsonb(None))

    refusals = {refused_by(team, adding(team, "worker_tokens", **{column: value})) for value in unclean}
    kept = [
        team.stored("worker_tokens", rows.add_worker_token(team, **{column: value}))[column]
        for value in (None, [], ["git", "Git"])
    ]

    assert refusals == {f"worker_tokens_{column}_clean"}
    assert kept == [None, [], ["git", "Git"]]


@mark.rule("R000-117")
def test_a_share_may_be_bound_or_not(team: Team) -> None:
    bound, unbound = rows.agent_id(team), None

    kept = [
        team.stored("collections", rows.add_collection(team, type="smb", bound_agent_id=agent))["bound_agent_id"]
        for agent in (bound, unbound)
    ]

    assert kept == [bound, unbound]


SAME_AGAIN = (
    param("agents", "system_user_id", "agents_system_user_uq", marks=mark.rule("R000-11", "R000-41")),
    param("agents", "api_key_hash", "agents_api_key_hash_uq", marks=mark.rule("R000-21", "R000-39")),
    param("agents", "worker_id", "agents_worker_id_uq"),
    param(
        "registration_tokens", "token_hash", "registration_tokens_hash_uq", marks=mark.rule("R000-54", "R000-60")
    ),
    param("worker_tokens", "token_hash", "worker_tokens_hash_uq", marks=mark.rule("R001-3")),
    param("operator_tokens", "token_hash", "operator_tokens_hash_uq"),
    param("settings", "name", "settings_pkey"),
    param("sessions", "id", "sessions_pkey", marks=mark.rule("R004-11")),
    param("agents", "id", "agents_pkey", marks=mark.rule("R000-9", "R004-9")),
    param("registration_tokens", "id", "registration_tokens_pkey", marks=mark.rule("R000-51")),
    param("users", "id", "users_pkey"),
)


@mark.parametrize(("table", "column", "constraint"), SAME_AGAIN)
def test_what_must_be_the_only_one_is_refused_again(team: Team, table: str, column: str, constraint: str) -> None:
    first = ADD[table](team)

    assert refused_by(team, adding(team, table, **{column: first[column]})) == constraint


SAME_BUT_FOR_CASE = (
    param("agents", "name", "agents_name_uq", marks=mark.rule("R002-94")),
    param("connectors", "name", "connectors_name_uq"),
    param("collections", "name", "collections_name_uq"),
    param("users", "email", "users_email_uq"),
)


@mark.parametrize(("table", "column", "constraint"), SAME_BUT_FOR_CASE)
def test_names_are_the_same_in_any_case(team: Team, table: str, column: str, constraint: str) -> None:
    ADD[table](team, **{column: "Bob"})

    assert refused_by(team, adding(team, table, **{column: "bOB"})) == constraint


def test_a_deleted_agents_name_is_free_again(team: Team) -> None:
    rows.add_agent(team, name="atlas", worker_id="atlas", deleted_at=AT)

    alive = rows.add_agent(team, name="atlas", worker_id="atlas")

    assert team.stored("agents", alive)["deleted_at"] is None


@mark.rule("R000-42")
def test_one_person_registers_many_agents(team: Team) -> None:
    first, second = rows.add_agent(team), rows.add_agent(team)

    assert first["created_by_user_id"] == second["created_by_user_id"] == team.user_id


@mark.rule("R000-57", "R000-62")
def test_an_agent_comes_in_with_one_token_only(team: Team) -> None:
    use: Row = {"is_used": True, "used_at": AT, "used_by_agent_id": rows.agent_id(team)}
    rows.add_registration_token(team, **use)

    assert refused_by(team, adding(team, "registration_tokens", **use)) == "registration_tokens_agent_uq"


@mark.rule("R000-17")
def test_an_error_is_kept_while_the_agent_is_in_error(team: Team) -> None:
    row = rows.add_agent_runtime(team, presence="error", last_heartbeat_at=AT, error_message="disk full")

    better = "update agent_runtime set presence = 'online' where agent_id = %s"
    refusal = refused_by(team, lambda: team.execute(better, row["agent_id"]))

    assert team.stored("agent_runtime", row)["error_message"] == "disk full"
    assert refusal == "agent_runtime_error_only_in_error"


@mark.rule("R002-8")
@mark.parametrize("presence", ["online", "offline", "unknown", "error"])
def test_every_presence_is_stored(team: Team, presence: str) -> None:
    row = rows.add_agent_runtime(team, presence=presence, last_heartbeat_at=AT)

    assert team.stored("agent_runtime", row)["presence"] == presence


def test_an_agent_with_collections_or_sessions_is_not_removed(team: Team) -> None:
    bound = rows.add_collection(team, type="local", bound_agent_id=rows.agent_id)["bound_agent_id"]
    visited = rows.add_session(team)["agent_id"]
    remove = "delete from agents where id = %s"

    refusals = [refused_by(team, partial(team.execute, remove, agent)) for agent in (bound, visited)]

    assert refusals == ["collections_bound_agent_id_fkey", "sessions_agent_id_fkey"]


def test_every_check_of_these_tables_is_tried(team: Team) -> None:
    tried = {str(case.values[2]) for case in REFUSED}
    tried |= {f"{case.values[0]}_{case.values[1]}_sha256" for case in HASHED}
    tried |= {f"worker_tokens_{case.values[0]}_clean" for case in CLEAN_LISTS}

    assert rows.checks_of(team, *TABLES) - tried == {"users_kind_known"}, "the kind is also in users_kind_fits"

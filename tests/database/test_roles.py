"""Who may do what in the database itself: the program, the one who prunes, the one who only looks."""

from collections.abc import Iterator

import psycopg
import pytest
from pytest import mark, param

from agent_console.database.roles import APP, MAINTENANCE, OWNER, READ_ONLY, with_role
from tests.database import rows
from tests.database.acting import acting_as
from tests.database.rows import ADD
from tests.database.team import Team
from tests.support.clusters import TemplateDatabase

# Written once, never again: what happened, what came of it, what the policy was, what is still to be counted.
NEVER_CHANGED = {
    "a2a_route_versions",
    "audit_checkpoints",
    "audit_heads",
    "audit_log",
    "audit_seals",
    "job_events",
    "job_results",
    "messages",
    "queue_moves",
    "schema_fits",
}
# Sealing, dropping months and migrating are done by the owner; nobody else writes these tables.
WRITTEN_BY_THE_OWNER = {"audit_checkpoints", "audit_heads", "audit_seals", "schema_fits"}
REMOVED_BY_THE_PROGRAM = {
    "a2a_routes",
    "agent_connectors",
    "agent_runtime",
    "approval_looks",
    "connectors",
    "queue_moves",
    "settings",
    "thread_participants",
}
PRUNED = {"audit_log", "audit_seals", "job_events", "job_results", "jobs", "threads"}
SECRET = {
    "agents.api_key_hash",
    "agents.previous_key_hash",
    "connectors.credentials_encrypted",
    "connectors.credentials_key_id",
    "jobs.signing_nonce",
    "jobs.signing_secret_hash",
    "operator_tokens.token_hash",
    "registration_tokens.client_nonce_hash",
    "registration_tokens.token_hash",
    "worker_tokens.token_hash",
}


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "roles") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def may(team: Team, role: str, privilege: str) -> set[str]:
    """The tables on which the role has the privilege, for all columns."""
    found = team.execute(
        """
        select relname from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
           and relname <> 'alembic_version' and has_table_privilege(%s, oid, %s)
        """,
        *(role, privilege),
    )
    return {str(row["relname"]) for row in found}


REWRITES = (
    param("update audit_log set reason = 'x'", marks=mark.rule("R002-92", "R002-93")),
    param("delete from audit_log", marks=mark.rule("R002-92", "R002-93")),
    param("truncate audit_log", marks=mark.rule("R002-93")),
    param("update job_events set message = 'x'", marks=mark.rule("R001-16", "R001-24")),
    param("delete from job_events", marks=mark.rule("R001-16", "R001-24")),
    param("truncate job_events", marks=mark.rule("R001-16")),
    param("delete from jobs"),
    param("update audit_seals set position = 9"),
    param("delete from audit_checkpoints"),
    param("alter table audit_log disable trigger all", marks=mark.rule("R002-92")),
)


@mark.parametrize("change", REWRITES)
@mark.parametrize("retention", ["off", "on"])
def test_the_program_may_not_rewrite_history_whatever_it_sets(team: Team, change: str, retention: str) -> None:
    team.execute(f"set local agent_console.retention = '{retention}'")

    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied|must be owner"),
        acting_as(team, APP),
    ):
        team.execute(change)


@mark.rule("R002-93")
def test_the_program_reads_and_adds_to_the_trail(team: Team) -> None:
    with acting_as(team, APP):
        row = rows.add_audit_row(team)

    assert team.stored("audit_log", row)["id"] == row["id"]


@mark.parametrize("table", ["audit_log", "job_events"])
@mark.parametrize("change", ["update {} set team_id = team_id", "delete from {}"])
def test_even_the_owner_is_stopped_by_the_trigger(team: Team, table: str, change: str) -> None:
    ADD[table](team)

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"), acting_as(team, OWNER):
        team.execute(change.format(table))


@mark.parametrize("table", [table for table in ADD if table not in WRITTEN_BY_THE_OWNER])
def test_the_program_adds_a_row_to_every_table_and_reads_it(team: Team, table: str) -> None:
    with acting_as(team, APP):
        row = ADD[table](team)
        kept = team.stored(table, row)

    assert {name: kept[name] for name in row if "id" in name} == {n: row[n] for n in row if "id" in n}


@mark.rule("R002-90", "R002-93")
@mark.parametrize("role", [APP, MAINTENANCE, READ_ONLY])
@mark.parametrize("table", sorted(WRITTEN_BY_THE_OWNER))
def test_nobody_else_writes_what_the_owner_does(team: Team, role: str, table: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, role):
        ADD[table](team)

    assert may(team, role, "select") >= WRITTEN_BY_THE_OWNER


def test_what_the_program_may_change_and_remove(team: Team) -> None:
    assert may(team, APP, "update") == set(ADD) - NEVER_CHANGED
    assert may(team, APP, "delete") == REMOVED_BY_THE_PROGRAM
    assert may(team, APP, "truncate") == may(team, APP, "trigger") == may(team, APP, "references") == set()


def test_a_session_of_the_program_has_no_more_rights_than_its_role(database: str) -> None:
    with psycopg.connect(with_role(database, APP), autocommit=True) as connection:
        who = connection.execute("select current_user").fetchone()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("create table mine (id integer)")

    assert who == (APP,)


def test_the_maintenance_role_prunes_and_changes_no_more_than_the_program(team: Team) -> None:
    assert may(team, MAINTENANCE, "delete") == REMOVED_BY_THE_PROGRAM | PRUNED
    assert may(team, MAINTENANCE, "update") == may(team, APP, "update")
    assert may(team, MAINTENANCE, "truncate") == set()


PRUNINGS = ("delete from job_events", "delete from jobs", "delete from audit_log")


@mark.parametrize("pruning", PRUNINGS)
def test_pruning_without_saying_so_is_refused(team: Team, pruning: str) -> None:
    rows.add_job_event(team)
    rows.add_audit_row(team)

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"), acting_as(team, MAINTENANCE):
        team.execute(pruning)


@mark.parametrize("pruning", PRUNINGS)
def test_pruning_is_done_by_the_one_who_says_so(team: Team, pruning: str) -> None:
    rows.add_job_event(team)
    rows.add_audit_row(team)

    with acting_as(team, MAINTENANCE):
        team.execute("set local agent_console.retention = 'on'")
        team.execute(pruning)

    assert team.execute(pruning.replace("delete", "select 1")) == []


def test_pruning_never_becomes_rewriting(team: Team) -> None:
    rows.add_job_event(team)

    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, MAINTENANCE):
        team.execute("set local agent_console.retention = 'on'")
        team.execute("update job_events set message = 'x'")


def _columns(team: Team, privilege: str) -> tuple[set[str], set[str]]:
    """The columns of all tables, and those on which the read-only role has the privilege."""
    found = team.execute(
        """
        select relname || '.' || attname as place, has_column_privilege(%s, c.oid, attnum, %s) as allowed
          from pg_class as c join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
        """,
        *(READ_ONLY, privilege),
    )
    return {str(row["place"]) for row in found}, {str(row["place"]) for row in found if row["allowed"]}


def test_the_read_only_role_reads_everything_but_secrets(team: Team) -> None:
    everything, readable = _columns(team, "select")

    assert everything - readable == SECRET


def test_a_new_column_that_sounds_like_a_secret_is_not_forgotten(team: Team) -> None:
    everything, _ = _columns(team, "select")
    of_the_trail = {"audit_log", "audit_seals", "audit_heads", "audit_checkpoints"}

    suspicious = {
        place
        for place in everything
        if any(word in place.split(".")[1] for word in ("hash", "encrypted", "secret", "nonce", "password"))
        and place.split(".")[0] not in of_the_trail
    }

    assert suspicious <= SECRET


@mark.parametrize("secret", sorted(SECRET))
def test_a_secret_is_refused_to_the_read_only_role(team: Team, secret: str) -> None:
    table, column = secret.split(".")

    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, READ_ONLY):
        team.execute(f"select {column} from {table}")


@mark.parametrize("privilege", ["insert", "update"])
def test_the_read_only_role_writes_no_column(team: Team, privilege: str) -> None:
    _, writable = _columns(team, privilege)

    assert writable == set()


@mark.parametrize("privilege", ["delete", "truncate", "trigger", "references"])
def test_the_read_only_role_removes_nothing(team: Team, privilege: str) -> None:
    assert may(team, READ_ONLY, privilege) == set()


@mark.rule("R002-122")
@mark.parametrize("role", [APP, MAINTENANCE])
def test_the_program_makes_the_months_ahead_without_owning_the_trail(team: Team, role: str) -> None:
    with acting_as(team, role):
        (answer,) = team.execute("select make_audit_months(4) as made")

    (made,) = team.execute(
        "select count(*) as months, count(distinct relowner) as owners, min(relowner::regrole::text) as owner"
        " from pg_class where relname ~ '^audit_log_[0-9_]+$' and relkind = 'r'"
    )
    assert answer["made"] == 1
    assert (made["months"], made["owners"], made["owner"]) == (5, 1, OWNER)


def test_nobody_else_makes_months(team: Team) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, READ_ONLY):
        team.execute("select make_audit_months(4)")

    (public,) = team.execute(
        "select has_function_privilege('public', 'make_audit_months(integer)', 'execute') as allowed"
    )
    assert public["allowed"] is False


@mark.parametrize("role", [APP, MAINTENANCE, READ_ONLY])
def test_a_months_own_table_is_open_to_nobody(team: Team, role: str) -> None:
    rows.add_audit_row(team)
    (month,) = team.execute("select distinct tableoid::regclass::text as name from audit_log")

    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, role):
        team.execute(f"select 1 from {month['name']}")


@mark.parametrize("role", [OWNER, APP, MAINTENANCE, READ_ONLY])
def test_no_role_can_log_in_or_rise_above_itself(team: Team, role: str) -> None:
    (rights,) = team.execute(
        "select rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as any"
        " from pg_roles where rolname = %s",
        role,
    )

    assert rights["any"] is False


@mark.parametrize("role", [APP, MAINTENANCE, READ_ONLY])
def test_every_role_can_ask_which_schema_it_stands_before(team: Team, role: str) -> None:
    with acting_as(team, role):
        found = team.execute("select version_num from alembic_version")

    assert len(found) == 1


TRAIL_FUNCTIONS = ("append_audit", "seal_audit", "prune_audit", "prune_audit_seals", "make_audit_months")


@mark.rule("R002-93")
@mark.parametrize("function", TRAIL_FUNCTIONS)
def test_who_works_on_the_trail_does_it_through_its_functions(team: Team, function: str) -> None:
    (found,) = team.execute(
        "select has_function_privilege(%s, oid, 'execute') as app, has_function_privilege(%s, oid, 'execute') as"
        " maintenance, has_function_privilege(%s, oid, 'execute') as reader, has_function_privilege('public', oid,"
        " 'execute') as everybody, proowner::regrole::text as owner from pg_proc where proname = %s",
        *(APP, MAINTENANCE, READ_ONLY, function),
    )

    assert found == {"app": True, "maintenance": True, "reader": False, "everybody": False, "owner": OWNER}

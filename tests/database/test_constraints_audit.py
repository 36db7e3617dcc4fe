"""What the schema itself refuses and keeps for the audit trail, its seals and its checkpoints."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from pytest import mark, param

from agent_console.domain.ids import AgentId, AuditId
from tests.database import rows
from tests.database.rows import ADD, adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

TABLES = ("audit_log", "audit_seals", "audit_heads", "audit_checkpoints")
OF_AGENT: Row = {"actor_type": "agent", "actor_user_id": None, "actor_agent_id": AgentId.new()}
OF_SYSTEM: Row = {"actor_type": "system", "actor_user_id": None, "actor_agent_id": None}


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "audit") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


REFUSED = (
    param("audit_log", {"actor_type": "robot"}, "audit_log_actor_fits", marks=mark.rule("R002-81")),
    param("audit_log", {"actor_user_id": None}, "audit_log_actor_fits", marks=mark.rule("R002-81")),
    param("audit_log", {"actor_agent_id": AgentId.new()}, "audit_log_actor_fits", marks=mark.rule("R002-81")),
    param("audit_log", OF_AGENT | {"actor_agent_id": None}, "audit_log_actor_fits", marks=mark.rule("R002-81")),
    param(
        "audit_log", OF_SYSTEM | {"actor_agent_id": AgentId.new()}, "audit_log_actor_fits",
        marks=mark.rule("R002-81"),
    ),
    param("audit_log", {"actor_label": None}, "actor_label"),
    param("audit_log", {"action": None}, "action"),
    param("audit_log", {"action": "create"}, "audit_log_action_form"),
    param("audit_log", {"action": "Job.Create"}, "audit_log_action_form"),
    param("audit_log", {"resource_type": None}, "resource_type", marks=mark.rule("R002-84")),
    param("audit_log", {"resource_id": None}, "resource_id", marks=mark.rule("R002-84")),
    param("audit_log", {"resource_type": " "}, "audit_log_resource_given", marks=mark.rule("R002-84")),
    param("audit_log", {"resource_id": ""}, "audit_log_resource_given", marks=mark.rule("R002-84")),
    param("audit_log", {"decision": "maybe"}, "audit_log_decision_known", marks=mark.rule("R002-86")),
    param("audit_log", {"metadata": []}, "audit_log_metadata_object", marks=mark.rule("R002-89")),
    param(
        "audit_log", OF_AGENT | {"user_agent": "curl"}, "audit_log_place_of_humans", marks=mark.rule("R002-88")
    ),
    param(
        "audit_log", OF_SYSTEM | {"ip": "192.0.2.1"}, "audit_log_place_of_humans", marks=mark.rule("R002-88")
    ),
    param("audit_heads", {"position": -1}, "audit_heads_order"),
    param("audit_heads", {"highest_seq": 0, "since_seq": 1}, "audit_heads_order"),
    param("audit_heads", {"hash": bytes(31)}, "audit_heads_hash_sha256"),
    param("audit_log", {"event_hash": b"short"}, "audit_log_event_hash_sha256"),
    param("audit_seals", {"position": 0}, "audit_seals_position_positive"),
    *(
        param("audit_seals", {column: bytes(31)}, "audit_seals_hashes_sha256")
        for column in ("event_hash", "prev_hash", "hash")
    ),
    param("audit_checkpoints", {"month": date(2026, 1, 2)}, "audit_checkpoints_month_start"),
    param("audit_checkpoints", {"last_position": -1}, "audit_checkpoints_order"),
    param("audit_checkpoints", {"rows": -1}, "audit_checkpoints_order"),
    param("audit_checkpoints", {"last_hash": bytes(31)}, "audit_checkpoints_last_hash_sha256"),
)  # fmt: skip


@mark.parametrize(("table", "changes", "constraint"), REFUSED)
def test_a_row_that_breaks_a_rule_is_refused(team: Team, table: str, changes: Row, constraint: str) -> None:
    assert refused_by(team, adding(team, table, **changes)) == constraint


@mark.parametrize(
    "changes",
    [
        param(OF_AGENT, marks=mark.rule("R002-81")),
        param(OF_SYSTEM, marks=mark.rule("R002-81")),
        *(param({"decision": word}, marks=mark.rule("R002-86")) for word in ("allow", "block", "error", None)),
    ],
)
def test_what_the_rules_allow_is_kept(team: Team, changes: Row) -> None:
    kept = team.stored("audit_log", rows.add_audit_row(team, **changes))

    assert {column: kept[column] for column in changes} == changes


@mark.rule("R002-82", "R002-85")
def test_a_row_stays_as_it_is_when_everything_it_names_is_gone(team: Team) -> None:
    run = rows.add_run(team)
    actor = rows.agent_id(team)
    told: Row = {"actor_agent_id": actor, "thread_id": run["thread_id"], "run_id": run["id"]}
    row = rows.add_audit_row(team, **OF_AGENT | told)
    before = team.stored("audit_log", row)

    team.execute("delete from threads where id = %s", run["thread_id"])
    team.execute("delete from agents where id = %s", actor)

    assert team.stored("audit_log", row) == before


@mark.rule("R002-82", "R002-85")
@mark.parametrize("table", TABLES)
def test_the_trail_has_no_foreign_keys(team: Team, table: str) -> None:
    keys = team.execute("select conname from pg_constraint where contype = 'f' and conrelid = %s::regclass", table)

    assert keys == []


REWRITES = (
    param("audit_log", "update audit_log set reason = 'x'", marks=mark.rule("R002-92")),
    param("audit_log", "delete from audit_log", marks=mark.rule("R002-92")),
    param("audit_seals", "update audit_seals set sealed_at = now()"),
    param("audit_seals", "delete from audit_seals"),
    param("audit_checkpoints", "update audit_checkpoints set rows = 1"),
    param("audit_checkpoints", "delete from audit_checkpoints"),
)


@mark.parametrize(("table", "change"), REWRITES)
def test_nobody_rewrites_the_trail(team: Team, table: str, change: str) -> None:
    row = ADD[table](team)
    before = team.execute(f"select * from {table}")

    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="is append-only"),
        team.connection.transaction(),
    ):
        team.execute(change)

    assert row and team.execute(f"select * from {table}") == before


def test_not_even_a_months_own_table_can_be_rewritten(team: Team) -> None:
    row = rows.add_audit_row(team)
    (month,) = team.execute("select tableoid::regclass::text as name from audit_log where id = %s", row["id"])

    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="is append-only"),
        team.connection.transaction(),
    ):
        team.execute(f"update {month['name']} set reason = 'x'")

    assert team.stored("audit_log", row)["reason"] is None


FORKS = (
    param({"position": 1}, "audit_seals_pkey"),
    param({"audit_id": AuditId(int=7 << 76)}, "audit_seals_audit_uq"),
    param({"prev_hash": bytes(32)}, "audit_seals_prev_uq"),
)


@mark.parametrize(("same", "constraint"), FORKS)
def test_a_chain_has_one_link_for_each_row_and_never_forks(team: Team, same: Row, constraint: str) -> None:
    rows.add_audit_seal(team, **same)
    elsewhere: Row = {"position": 2, "audit_id": AuditId.new(), "prev_hash": b"\x01" * 32}

    assert refused_by(team, adding(team, "audit_seals", **elsewhere | same)) == constraint


def test_a_month_is_cut_off_once(team: Team) -> None:
    rows.add_checkpoint(team)

    assert refused_by(team, adding(team, "audit_checkpoints")) == "audit_checkpoints_month_uq"


@mark.rule("R002-3", "R002-80")
def test_rows_are_numbered_in_their_order(team: Team) -> None:
    written = [rows.add_audit_row(team)["id"] for _ in range(3)]

    numbered = team.execute("select id from audit_log order by seq")

    assert [row["id"] for row in numbered] == written


@mark.rule("R002-122")
def test_a_row_lands_in_its_month_and_the_months_ahead_are_there(team: Team) -> None:
    months = [_month(_now(team), ahead) for ahead in range(4)]

    written = [rows.add_audit_row(team, created_at=month)["id"] for month in months]

    found = team.execute("select id, tableoid::regclass::text as month from audit_log order by created_at")
    assert [row["id"] for row in found] == written
    assert [row["month"] for row in found] == [f"audit_log_{month:%Y_%m}" for month in months]


@mark.rule("R002-122")
def test_the_last_moment_of_a_month_belongs_to_it(team: Team) -> None:
    team.execute("set local timezone = 'Pacific/Auckland'")
    last = _month(_now(team), 1) - timedelta(microseconds=1)

    row = rows.add_audit_row(team, created_at=last)

    (found,) = team.execute("select tableoid::regclass::text as month from audit_log where id = %s", row["id"])
    assert found["month"] == f"audit_log_{last:%Y_%m}"


@mark.rule("R002-122")
def test_months_are_made_once(team: Team) -> None:
    def made(ahead: int) -> object:
        (answer,) = team.execute("select make_audit_months(%s) as made", ahead)
        return answer["made"]

    assert (made(3), made(5), made(5)) == (0, 2, 0)


def _now(team: Team) -> datetime:
    (clock,) = team.execute("select now() as now")
    assert isinstance(clock["now"], datetime)
    return clock["now"].astimezone(UTC)


def _month(moment: datetime, ahead: int) -> datetime:
    """The first moment of a month, counted from that of `moment`."""
    years, month = divmod(moment.month - 1 + ahead, 12)
    return datetime(moment.year + years, month + 1, 1, tzinfo=UTC)


def test_every_check_of_these_tables_is_tried(team: Team) -> None:
    tried = {str(case.values[2]) for case in REFUSED}

    assert rows.checks_of(team, *TABLES) - tried == {"audit_log_actor_type_known"}, "also in audit_log_actor_fits"

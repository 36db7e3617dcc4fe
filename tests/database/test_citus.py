"""`db distribute`: every table of the teams can be spread by team, and is; where there is a Citus, on a real one.

`AGENT_CONSOLE_TEST_CITUS_DSN` names an empty database on the coordinator of a Citus cluster, as its superuser.
"""

import os
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection

from agent_console.cli.schema import distribute_database
from agent_console.config import load
from agent_console.database.address import administration_engine
from agent_console.database.distribute import Distribution, distribute, planned
from agent_console.database.migrate import migrate
from agent_console.database.tables import metadata
from agent_console.domain.errors import ConfigError
from tests.database.citus_rules import REFUSED_REFERENCES, STAND_IN

CITUS_DSN = os.environ.get("AGENT_CONSOLE_TEST_CITUS_DSN", "")

FIRST_USER = """
    insert into users (team_id, id, email, full_name, role)
    select id, new_id(), 'ana@near.example', 'Ana', 'admin' from teams where slug = 'near'
"""
OF_NO_TEAM = {"teams", "duty_rounds", "schema_fits"}
# They would be emptied when their target goes, which only retention and the end of a thread do. Without them an id
# may name what is gone, as it may in every id of a history.
GIVEN_UP = {
    "approvals_input_message_id_fkey",
    "approvals_parent_run_id_fkey",
    "approvals_run_id_fkey",
    "jobs_parent_job_id_fkey",
    "jobs_run_id_fkey",
    "messages_run_id_fkey",
    "runs_input_message_id_fkey",
    "runs_parent_run_id_fkey",
}


NARROW = (
    "create unique index agents_everywhere_uq on agents (name)",
    "alter table agents add constraint agents_everywhere_key unique (worker_id)",
    "alter table agents add constraint agents_crossed_key unique (id, team_id)",
    "alter table lanes add constraint lanes_crossed_fkey foreign key (team_id, bound_agent_id)"
    " references agents (id, team_id)",
)


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with administration_engine(database).connect() as connection:
        yield connection


@pytest.fixture
def plan(connection: Connection) -> Distribution:
    return planned(connection)


@pytest.mark.rule("R004-75")
def test_every_key_and_every_reference_is_fit_to_be_spread_by_team(plan: Distribution) -> None:
    """But one key, of a table that nobody refers to, which is widened by the team."""
    assert set(plan.tables) == set(metadata.tables) - OF_NO_TEAM
    assert [(key.name, key.columns) for key in plan.narrow_keys] == [("queue_moves_pkey", ("id",))]
    assert plan.unfit == ()
    assert len(plan.references) > 60
    assert set(plan.given_up) == GIVEN_UP


def test_a_rule_that_does_not_name_the_team_is_told_as_unfit(connection: Connection) -> None:
    for statement in NARROW:
        connection.exec_driver_sql(statement)

    unfit = planned(connection).unfit

    assert set(unfit) == {"agents_everywhere_uq", "agents_everywhere_key", "lanes_crossed_fkey"}


def test_all_tables_are_spread_side_by_side_and_a_second_time_changes_nothing(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(database, autocommit=True) as citus:
        citus.execute(STAND_IN)

        first, second = distribute(database), distribute(database)
        distribute_database(load({"dsn": database}))

        spread = citus.execute("select logicalrelid::text, column_name, beside from pg_dist_partition").fetchall()
        refused = citus.execute(REFUSED_REFERENCES).fetchall()
        settings = citus.execute("select count(*) from said_to_all_nodes").fetchone()
        key = citus.execute(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'queue_moves_pkey'"
        ).fetchone()
    assert set(spread) == {("teams", None, "copied")} | {(name, "team_id", "users") for name in first.tables}
    assert refused == []
    assert settings == (2,)
    assert key == ("PRIMARY KEY (team_id, id)",)
    assert (second.tables, second.copied) == ((), False)
    assert "is spread by team already" in capsys.readouterr().err


def test_without_citus_one_is_told_what_to_do(database: str) -> None:
    with pytest.raises(ConfigError) as refused:
        distribute(database)

    assert "create extension citus" in refused.value.hint


if CITUS_DSN:

    def test_on_a_real_citus_every_table_is_spread_and_a_team_can_be_written() -> None:
        migrate(CITUS_DSN)

        done = distribute(CITUS_DSN)

        with psycopg.connect(CITUS_DSN, autocommit=True) as citus:
            groups = citus.execute("select table_name::text, colocation_id from citus_tables").fetchall()
            citus.execute("insert into teams (id, slug, name) values (new_id(), 'near', 'Near')")
            citus.execute(FIRST_USER)
            seen = citus.execute("select count(*) from users").fetchone()
        spread = {name: group for name, group in groups if name in done.tables}
        assert set(spread) == set(done.tables)
        assert len(set(spread.values())) == 1
        assert seen == (1,)

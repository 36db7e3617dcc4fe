"""A PostgreSQL that somebody else runs: its administrator makes roles and databases, and is no superuser."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.database.first_team import add_team
from agent_console.database.migrate import SchemaState, migrate
from agent_console.database.roles import APP
from agent_console.domain.errors import DatabaseUnavailable
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.repository.postgres.repository import open_direct
from tests.database.conftest import VERSIONS
from tests.support.clusters import Cluster, Version, cluster, reachable_folder

TEAM = ("payments", "Payments", "ana@example.com", "Ana")


@pytest.fixture(params=VERSIONS)
def managed(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Roles are of a whole cluster, and in the one that all tests share a superuser has made them."""
    version: Version = request.param
    with reachable_folder() as folder, cluster(version, folder) as running:
        as_(running.dsn(), "create role admin login createrole createdb", "create role console login")
        as_(dsn_of(running, "postgres", "admin"), "create database agents")
        yield running


def dsn_of(server: Cluster, database: str, user: str) -> str:
    return make_conninfo(server.dsn(database), user=user)


def as_(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def test_who_may_make_roles_migrates_makes_teams_and_lets_programs_in(managed: Cluster) -> None:
    admin, console = dsn_of(managed, "agents", "admin"), dsn_of(managed, "agents", "console")

    before = migrate(admin).state
    add_team(admin, *TEAM)
    again = migrate(admin).state
    as_(admin, f"grant {APP} to console")
    async with open_direct(console, team="payments", user="ana@example.com") as ana:
        me = await ana.call(ME, Nothing())

    assert (before, again) == (SchemaState.EMPTY, SchemaState.CURRENT)
    assert (me.team, me.role) == ("payments", "admin")


def test_a_second_database_stands_on_the_same_roles(managed: Cluster) -> None:
    migrate(dsn_of(managed, "agents", "admin"))
    as_(dsn_of(managed, "postgres", "admin"), "create database more")
    more = dsn_of(managed, "more", "admin")

    before = migrate(more).state
    add_team(more, *TEAM)

    assert before is SchemaState.EMPTY


def test_who_may_not_own_the_tables_is_told_what_to_run_and_then_may(managed: Cluster) -> None:
    admin, console = dsn_of(managed, "agents", "admin"), dsn_of(managed, "agents", "console")
    migrate(admin)
    as_(admin, f"grant {APP} to console")

    with pytest.raises(DatabaseUnavailable) as refused:
        add_team(console, *TEAM)
    words, _, command = refused.value.hint.partition(": ")
    as_(admin, command)
    add_team(console, *TEAM)

    assert refused.value.message.startswith("This database user may not work as agent_console_owner: ")
    assert words == "Have an administrator of the database run"
    assert command == "grant agent_console_owner to console"


def test_before_there_are_roles_a_team_waits_for_the_first_migration(managed: Cluster) -> None:
    admin = dsn_of(managed, "agents", "admin")

    with pytest.raises(DatabaseUnavailable) as refused:
        add_team(admin, *TEAM)

    assert refused.value.hint == "Run: agent-console db migrate"

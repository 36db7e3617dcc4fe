"""A database on loan is as its template is, whoever had it before."""

import psycopg

from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import Cluster
from tests.support.fleet import Fleet
from tests.support.lending import Lending


def test_a_database_that_was_only_read_goes_to_the_next(lending: Lending, postgres: Cluster) -> None:
    with lending.lent(FLEET_TEMPLATE) as first, Fleet(postgres.dsn(first)) as fleet:
        fleet.team_id()

    with lending.lent(FLEET_TEMPLATE) as second:
        assert second == first


def test_a_database_that_was_written_to_is_gone(lending: Lending, postgres: Cluster) -> None:
    with lending.lent(FLEET_TEMPLATE) as written, Fleet(postgres.dsn(written)) as fleet:
        fleet.execute("update teams set name = name")

    with lending.lent(FLEET_TEMPLATE) as fresh, Fleet(postgres.dsn(fresh)) as fleet:
        assert fresh != written
        assert fleet.one("select count(*) from pg_database where datname = %s", written) == 0


def test_what_was_rolled_back_counts_as_written(lending: Lending, postgres: Cluster) -> None:
    with lending.lent(FLEET_TEMPLATE) as written, psycopg.connect(postgres.dsn(written)) as connection:
        connection.execute("update teams set name = name")
        connection.rollback()

    with lending.lent(FLEET_TEMPLATE) as fresh:
        assert fresh != written


def test_nobody_is_still_connected_when_it_goes_on(lending: Lending, postgres: Cluster) -> None:
    with lending.lent(FLEET_TEMPLATE) as name:
        left_behind = psycopg.connect(postgres.dsn(name))

    with lending.lent(FLEET_TEMPLATE) as again, Fleet(postgres.dsn(again)) as fleet:
        here = fleet.one("select count(*) from pg_stat_activity where datname = current_database()")
        left_behind.close()

    assert (again, here) == (name, 1)


def test_a_fleet_whose_session_was_ended_connects_again(fleet: Fleet, postgres: Cluster) -> None:
    session = fleet.one("select pg_backend_pid()")

    Fleet(postgres.dsn()).execute("select pg_terminate_backend(%s, 5000)", session)

    assert fleet.one("select pg_backend_pid()") != session

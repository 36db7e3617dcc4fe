"""Doing something with the rights of one of the database's roles."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import sql

from tests.database.team import Team


@contextmanager
def acting_as(team: Team, role: str) -> Iterator[None]:
    """Everything inside is done with that role's rights, on its own savepoint."""
    with team.connection.transaction():
        team.connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        yield
        team.connection.execute("reset role")

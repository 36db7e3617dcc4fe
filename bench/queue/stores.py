"""The databases of the contenders, all in one PostgreSQL, and the jobs that wait in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from agent_console.database.embedded import EmbeddedServer

AT_ONCE = 50_000
# Jobs that are put in by hand wake nobody: a notice for each would be measured instead of the claims.
SILENTLY = "-c session_replication_role=replica"


@dataclass(frozen=True)
class Store:
    """Where a contender's jobs wait: `add` puts %(jobs)s of them in, `waiting` counts them.

    One that is not `fed` is never worked off, such as the rows that are only updated.
    """

    dsn: str
    add: LiteralString
    waiting: LiteralString
    facts: Mapping[str, object] = field(default_factory=dict)
    fed: bool = True
    silently: bool = False

    @property
    def feeding_dsn(self) -> str:
        return make_conninfo(self.dsn, options=SILENTLY) if self.silently else self.dsn

    def asked(self, jobs: int) -> dict[str, object]:
        return {**self.facts, "jobs": jobs}

    def fill_to(self, depth: int) -> None:
        """Then clean up, so that no slice pays for the one before."""
        with psycopg.connect(self.feeding_dsn, autocommit=True) as connection:
            missing = depth - waiting_in(connection, self)
            while missing > 0:
                connection.execute(self.add, self.asked(min(missing, AT_ONCE)))
                missing -= AT_ONCE
            connection.execute("vacuum (analyze)")
            connection.execute("checkpoint")


def waiting_in(connection: psycopg.Connection[tuple[object, ...]], store: Store) -> int:
    ((found,),) = connection.execute(store.waiting).fetchall()
    assert isinstance(found, int)
    return found


def reserve(depth: int) -> int:
    """How many more than the depth wait when a slice begins, so that it never falls below the depth."""
    return max(1_000, min(depth, 100_000))


@contextmanager
def database(server: EmbeddedServer, name: str) -> Iterator[str]:
    """A database of this name for as long as the block lasts; the value is its DSN."""
    named = sql.Identifier(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(named))
        connection.execute(sql.SQL("create database {}").format(named))
    try:
        yield server.dsn(name)
    finally:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(sql.SQL("drop database {} with (force)").format(named))

"""Statements are compiled once for a whole run, as they are in a program, which has one engine for its whole life.

SQLAlchemy keeps what it compiled with each engine, and a test has an engine of its own: a tenth of the time of the
tests about the repository went into compiling the same statements again. It also asks the first connection of each
engine five questions about the server, which all servers of one version answer alike.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import LRUCache

from agent_console.repository.postgres import database

COMPILED: LRUCache[Any, Any] = LRUCache(2_000)
ANSWERED: dict[int, dict[str, object]] = {}
"""What the servers of a version said of themselves."""


class SameDialect(PGDialectAsync_psycopg):
    """What is compiled for one server fits another of its version."""

    supports_statement_cache = True

    def initialize(self, connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert driver is not None
        version: int = driver.info.server_version
        if version not in ANSWERED:
            before = dict(vars(self))
            ask: Callable[[Connection], None] = super().initialize
            ask(connection)
            ANSWERED[version] = {
                name: value for name, value in vars(self).items() if before.get(name) is not value
            }
        vars(self).update(ANSWERED[version])

    def __hash__(self) -> int:
        return hash(self._same())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameDialect) and self._same() == other._same()

    def _same(self) -> tuple[object, ...]:
        return (self.server_version_info, self.paramstyle)


def compile_once() -> None:
    """For every engine that is made from here on."""
    make: Callable[..., AsyncEngine] = vars(database)["create_async_engine"]

    def making(*given: Any, **settings: Any) -> AsyncEngine:
        engine = make(*given, **settings, execution_options={"compiled_cache": COMPILED})
        engine.sync_engine.dialect.__class__ = SameDialect
        return engine

    vars(database)["create_async_engine"] = making

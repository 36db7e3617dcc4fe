"""Bring the embedded database to this program's schema without reading Alembic when there is nothing to do."""

import psycopg

from agent_console.database.address import refused
from agent_console.database.schema import REVISION

CONNECT_SECONDS = 10


def bring_up_to_date(dsn: str) -> None:
    if is_current(dsn):
        return
    from agent_console.database.migrate import migrate

    migrate(dsn)


def is_current(dsn: str) -> bool:
    with refused(dsn), psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
        try:
            found = connection.execute("select version_num from alembic_version").fetchall()
        except psycopg.errors.UndefinedTable:
            return False
    return found == [(REVISION,)]

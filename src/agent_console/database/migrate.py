"""Bring a database to this program's schema, and say where it stands."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

import psycopg
import sqlalchemy.exc
from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, text

from agent_console.database.address import administration_engine, refused
from agent_console.database.fits import programs_served, serves_since
from agent_console.database.roles import APP, MAINTENANCE, READ_ONLY, become_owner, ensure_roles
from agent_console.database.schema import require_served
from agent_console.domain.errors import DatabaseUnavailable

# One migration at a time on a database, whoever starts it.
MIGRATION_LOCK = 4_872_311_093
# Whoever wants a table for itself lets nobody else in while it waits: not for long, on a fleet at work.
TABLE_SECONDS = 5.0


class SchemaState(StrEnum):
    CURRENT = "current"
    EMPTY = "empty"
    BEHIND = "behind"
    NEWER = "newer"


@dataclass(frozen=True)
class SchemaStatus:
    state: SchemaState
    revision: str | None
    wanted: str
    pending: tuple[str, ...]
    served: tuple[str, ...]
    """The programs that work on it, each named by the schema it was written for."""
    cut_off: tuple[str, ...]
    """Those of them that would be refused once the pending migrations have run."""

    @property
    def serves_this_program(self) -> bool:
        return self.wanted in self.served

    @property
    def go_on(self) -> tuple[str, ...]:
        """Those that would not notice."""
        return tuple(program for program in self.served if program not in self.cut_off)


def migrations_folder() -> Path:
    """Inside the installed package, or beside `src` in a checkout."""
    packaged = Path(str(resources.files("agent_console"))) / "migrations"
    return packaged if packaged.is_dir() else packaged.parents[2] / "migrations"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def run_sql(name: str) -> None:
    """Run a migration's SQL file as it stands: without parameters the driver takes several statements."""
    sql = (migrations_folder() / "sql" / name).read_text(encoding="utf-8")
    driver_connection = op.get_bind().connection.driver_connection
    if driver_connection is not None:
        driver_connection.execute(sql)


def known_migrations() -> tuple[Script, ...]:
    """Oldest first."""
    return tuple(reversed([*ScriptDirectory.from_config(_config()).walk_revisions()]))


def known_revisions() -> tuple[str, ...]:
    """Oldest first; the last one is what this program wants."""
    return tuple(migration.revision for migration in known_migrations())


def status(dsn: str) -> SchemaStatus:
    with refused(dsn), administration_engine(dsn).connect() as connection:
        return _status(connection)


def _status(connection: Connection) -> SchemaStatus:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = known_migrations()
    served = programs_served(connection, revision)
    state = _state(revision, known)
    pending = () if state is SchemaState.NEWER else tuple(one for one in known if one.revision > (revision or ""))
    oldest = max((serves_since(migration) for migration in pending), default="")
    return SchemaStatus(
        state=state,
        revision=revision,
        wanted=known[-1].revision,
        pending=tuple(migration.revision for migration in pending),
        served=served,
        cut_off=tuple(program for program in served if program < oldest),
    )


def _state(revision: str | None, known: tuple[Script, ...]) -> SchemaState:
    if revision is None:
        return SchemaState.EMPTY
    if revision not in {migration.revision for migration in known}:
        return SchemaState.NEWER
    return SchemaState.CURRENT if revision == known[-1].revision else SchemaState.BEHIND


def migrate(dsn: str, target: str = "head", *, table_seconds: float = TABLE_SECONDS) -> SchemaStatus:
    """Upgrade to `target` under a lock; returns where the database stood before.

    A newer schema is left alone when it serves this program, and else refused.
    """
    with refused(dsn), administration_engine(dsn).connect() as connection:
        connection.execute(text("select pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        before = _status(connection)
        if before.state is SchemaState.NEWER:
            require_served(before.revision, listed=before.serves_this_program)
        elif before.state is not SchemaState.CURRENT:
            ensure_roles(connection)
            become_owner(connection)
            connection.execute(text(f"set lock_timeout = {round(table_seconds * 1000)}"))
            connection.commit()
            with _tables_in_use():
                command.upgrade(_config(connection), target)
            connection.execute(text(f"grant select on alembic_version to {APP}, {MAINTENANCE}, {READ_ONLY}"))
            connection.commit()
        return before


@contextmanager
def _tables_in_use() -> Iterator[None]:
    """Say so when somebody holds what a migration needs: it has changed nothing, and those before it stay."""
    try:
        yield
    except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
        original = error.orig if isinstance(error, sqlalchemy.exc.OperationalError) else error
        if not isinstance(original, psycopg.errors.LockNotAvailable):
            raise
        raise DatabaseUnavailable(
            "A migration needs a table that a long transaction holds, and has changed nothing.",
            hint="Run it again; if it stays so, look for long transactions (agent-console doctor).",
        ) from error


def downgrade(dsn: str, target: str = "base") -> None:
    """Undo migrations. For development and tests: it drops what the undone ones had made."""
    with refused(dsn), administration_engine(dsn).connect() as connection:
        connection.execute(text("select pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        become_owner(connection)
        command.downgrade(_config(connection), target)
        connection.commit()

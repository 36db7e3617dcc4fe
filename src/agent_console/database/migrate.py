"""Bring a database to this program's schema, and say where it stands."""

from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from agent_console.database.address import administration_engine, refused
from agent_console.database.roles import APP, MAINTENANCE, READ_ONLY, become_owner, ensure_roles
from agent_console.database.schema import require_revision

# One migration at a time on a database, whoever starts it.
MIGRATION_LOCK = 4_872_311_093


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


def known_revisions() -> tuple[str, ...]:
    """Oldest first; the last one is what this program wants."""
    script = ScriptDirectory.from_config(_config())
    return tuple(reversed([revision.revision for revision in script.walk_revisions()]))


def status_of(revision: str | None, known: tuple[str, ...]) -> SchemaStatus:
    if revision is None:
        return SchemaStatus(SchemaState.EMPTY, None, known[-1], known)
    if revision not in known:
        return SchemaStatus(SchemaState.NEWER, revision, known[-1], ())
    pending = known[known.index(revision) + 1 :]
    state = SchemaState.BEHIND if pending else SchemaState.CURRENT
    return SchemaStatus(state, revision, known[-1], pending)


def status(dsn: str) -> SchemaStatus:
    with refused(dsn), administration_engine(dsn).connect() as connection:
        return _status(connection)


def _status(connection: Connection) -> SchemaStatus:
    return status_of(MigrationContext.configure(connection).get_current_revision(), known_revisions())


def migrate(dsn: str, target: str = "head") -> SchemaStatus:
    """Upgrade to `target` under a lock; returns where the database stood before."""
    with refused(dsn), administration_engine(dsn).connect() as connection:
        connection.execute(text("select pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        before = _status(connection)
        if before.state is SchemaState.NEWER:
            require_revision(before.revision)
        if before.state is not SchemaState.CURRENT:
            ensure_roles(connection)
            become_owner(connection)
            command.upgrade(_config(connection), target)
            connection.execute(text(f"grant select on alembic_version to {APP}, {MAINTENANCE}, {READ_ONLY}"))
            connection.commit()
        return before


def downgrade(dsn: str, target: str = "base") -> None:
    """Undo migrations. For development and tests: it drops what the undone ones had made."""
    with refused(dsn), administration_engine(dsn).connect() as connection:
        connection.execute(text("select pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        become_owner(connection)
        command.downgrade(_config(connection), target)
        connection.commit()

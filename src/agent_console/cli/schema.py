"""`db migrate`, `db status` and `db distribute`."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent_console.cli.output import OutputForm, TableColumn, emit_one, narrate
from agent_console.config import Embedded, Settings
from agent_console.database.address import place
from agent_console.database.distribute import distribute
from agent_console.database.migrate import SchemaState, migrate, status
from agent_console.domain.errors import ConfigError


@contextmanager
def administration(settings: Settings) -> Iterator[str]:
    """A DSN that may change the schema."""
    profile = settings.profile
    if isinstance(profile.target, Embedded):
        from agent_console.database.embedded import embedded_postgres

        with embedded_postgres(profile.target.data_folder, say=narrate) as server:
            yield server.dsn()
        return
    connection = profile.connection()
    if connection is None:
        raise ConfigError(
            f"Profile {profile.name} leads to a server; only its database can be migrated.",
            hint="Say --dsn postgresql://… on the machine where the database is.",
        )
    # Migrating holds a lock for a whole session, which a pooler would not.
    yield (connection.listen_dsn or connection.dsn).get_secret_value()


def migrate_database(settings: Settings) -> None:
    with administration(settings) as dsn:
        before = migrate(dsn)
        if before.pending:
            narrate(f"Ran {len(before.pending)} migrations on {place(dsn)}: {', '.join(before.pending)}.")
        else:
            narrate(f"{place(dsn)} is already current ({before.revision}).")


def distribute_database(settings: Settings) -> None:
    with administration(settings) as dsn:
        done = distribute(dsn)
        if not done.tables:
            narrate(f"Every table of {place(dsn)} is spread by team already.")
            return
        narrate(f"Spread {len(done.tables)} tables of {place(dsn)} by team.")
        if done.given_up:
            narrate(f"Citus has no reference that empties itself; given up: {', '.join(done.given_up)}.")


def print_schema_status(settings: Settings, output: OutputForm) -> int:
    with administration(settings) as dsn:
        found = status(dsn)
        facts: dict[str, object] = {
            "id": found.revision or "-",
            "database": place(dsn),
            "state": found.state.value,
            "revision": found.revision,
            "wanted": found.wanted,
            "pending": list(found.pending),
        }
    columns: list[TableColumn[dict[str, object]]] = [
        TableColumn("database", lambda row: str(row["database"])),
        TableColumn("state", lambda row: str(row["state"])),
        TableColumn("revision", lambda row: str(row["revision"] or "-")),
        TableColumn("wanted", lambda row: str(row["wanted"])),
    ]
    emit_one(facts, columns, output)
    if found.state in (SchemaState.EMPTY, SchemaState.BEHIND):
        narrate("Run: agent-console db migrate")
    return 0 if found.state is SchemaState.CURRENT else 1

"""`db migrate`, `db status` and `db distribute`."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent_console.cli.output import OutputForm, TableColumn, emit_one, narrate
from agent_console.config import Embedded, Settings
from agent_console.database.address import place
from agent_console.database.distribute import distribute
from agent_console.database.migrate import SchemaState, SchemaStatus, migrate, status
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


def migrate_database(settings: Settings, *, dry_run: bool = False) -> None:
    with administration(settings) as dsn:
        before = status(dsn) if dry_run else migrate(dsn)
        if before.state is SchemaState.NEWER:
            narrate(newer(before))
        elif before.pending:
            narrate(f"{'Would run' if dry_run else 'Ran'} {listed(before.pending)} on {place(dsn)}.")
            narrate_served(before, dry_run=dry_run)
        else:
            narrate(f"{place(dsn)} is already current ({before.revision}).")


def listed(pending: tuple[str, ...]) -> str:
    return f"{len(pending)} migration{'s' if len(pending) > 1 else ''} ({', '.join(pending)})"


def newer(found: SchemaStatus) -> str:
    """What a schema means that this program does not know."""
    means = (
        "serves it: nothing to do" if found.serves_this_program else "no longer serves it: upgrade agent-console"
    )
    return f"Schema {found.revision} is newer than this program ({found.wanted}) and {means}."


def narrate_served(before: SchemaStatus, *, dry_run: bool) -> None:
    """What the migrations mean for the programs that run now."""
    if before.go_on:
        narrate(f"Programs of schema {', '.join(before.go_on)} {'would ' if dry_run else ''}go on working.")
    if before.cut_off:
        verb, advice = ("would be", ": upgrade or stop them first") if dry_run else ("are", " from now on")
        narrate(f"Programs of schema {', '.join(before.cut_off)} {verb} refused{advice}.")


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
            "served": list(found.served),
            "cut_off": list(found.cut_off),
        }
    columns: list[TableColumn[dict[str, object]]] = [
        TableColumn("database", lambda row: str(row["database"])),
        TableColumn("state", lambda row: str(row["state"])),
        TableColumn("revision", lambda row: str(row["revision"] or "-")),
        TableColumn("wanted", lambda row: str(row["wanted"])),
    ]
    emit_one(facts, columns, output)
    if found.state is SchemaState.NEWER:
        narrate(newer(found))
    elif found.pending:
        narrate("Run: agent-console db migrate")
        narrate_served(found, dry_run=True)
    return 0 if found.serves_this_program else 1

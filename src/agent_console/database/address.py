"""Where a database is: reading DSNs, showing them without secrets, and telling why one does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy.exc
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, Engine, NullPool, create_engine

from agent_console.domain.errors import ConfigError, ConsoleError, DatabaseUnavailable


def parsed(dsn: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError as error:
        raise ConfigError(
            f"The DSN can't be read: {str(error).strip()}.",
            hint="Write it as postgresql://user@host:5432/database or as host=… dbname=… user=….",
        ) from None


def sqlalchemy_url(dsn: str, driver: str = "psycopg") -> URL:
    """All connection settings travel as they are, multi-host and sockets included."""
    return URL.create(f"postgresql+{driver}", query=parsed(dsn))


def administration_engine(dsn: str) -> Engine:
    """For work that is done once and off the event loop: migrating, filling, minting."""
    return create_engine(
        sqlalchemy_url(dsn), poolclass=NullPool, hide_parameters=True, connect_args={"connect_timeout": 10}
    )


def place(dsn: str) -> str:
    """The database's address for people: no user, no password."""
    facts = parsed(dsn)
    host = facts.get("host", "localhost")
    port = facts.get("port", "5432")
    name = facts.get("dbname", "")
    return f"{name} at {host}" if host.startswith("/") else f"{name} at {host}:{port}"


def why(error: BaseException) -> str:
    """The driver's first plain sentence, without the connection string it may repeat."""
    original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    lines = [line.strip() for line in str(original).strip().splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if "failed: " in line), lines[0] if lines else "no answer")
    return telling.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")


def unreachable(dsn: str, error: BaseException) -> ConsoleError:
    """The error family's word for a driver error that means: this database can't be used now."""
    original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    reason = why(error)
    missing = "does not exist" in reason
    if isinstance(original, psycopg.errors.InvalidCatalogName) or (missing and reason.startswith("database ")):
        hint = "Create it first (createdb), or correct the DSN in your profile."
    elif (
        isinstance(original, psycopg.errors.InvalidAuthorizationSpecification)
        or (missing and reason.startswith("role "))
        or "password" in reason
    ):
        hint = "Check user and password of your profile (agent-console config show)."
    elif isinstance(original, psycopg.errors.DiskFull):
        hint = "Make room on the disk of the database; what was saved is safe, and work goes on by itself."
    elif "too many clients" in reason or "connection slots" in reason:
        hint = "All its connections are in use: raise max_connections, or put PgBouncer in front of it."
    elif "startup parameter" in reason:
        hint = "This is a connection pooler: put the database's own address beside it as listen_dsn."
    else:
        hint = "Check that PostgreSQL runs and that the DSN is right (agent-console config show)."
    return DatabaseUnavailable(f"The database {place(dsn)} can't be used: {reason}.", hint=hint)


@contextmanager
def refused(dsn: str) -> Iterator[None]:
    """Turn a driver's complaint about the connection into a sentence with a next step."""
    try:
        yield
    except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
        raise unreachable(dsn, error) from error

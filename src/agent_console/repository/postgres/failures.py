"""What the database's complaints mean to a person."""

import psycopg
import sqlalchemy.exc
from psycopg import errors as pg

from agent_console.database.address import unreachable
from agent_console.domain.errors import (
    Conflict,
    ConsoleError,
    DatabaseUnavailable,
    Internal,
    Invalid,
    NotFound,
    SchemaMismatch,
    TimedOut,
)

# Unique rules whose breach a caller can cause, in the caller's words.
TAKEN: dict[str, str] = {
    "jobs_scheduled_uq": "This collection already has a scheduled job for this tool.",
    "jobs_idempotency_uq": "This idempotency key is in use.",
    "agents_name_uq": "Another agent of the team has this name.",
    "agents_worker_id_uq": "Another agent of the team has this worker id.",
    "connectors_name_uq": "Another connector of the team has this name.",
    "collections_name_uq": "Another collection of the team has this name.",
    "users_email_uq": "Another user of the team has this e-mail address.",
    "users_subject_uq": "Another user of the team has this subject.",
}

AGAIN_SECONDS = 1


def as_console_error(error: BaseException, dsn: str) -> ConsoleError:
    """The error family's word for whatever the driver raised."""
    original: object = error
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        if error.connection_invalidated:
            return unreachable(dsn, error)
        original = error.orig
    match original:
        case pg.QueryCanceled() | pg.LockNotAvailable():
            return TimedOut(
                "The database took too long and the work was stopped.",
                hint="Try again; if it stays so, look for long transactions.",
            )
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return Conflict(
                "Somebody changed the same at the same time; nothing was changed.",
                hint="Try again.",
                details={"retry_after": AGAIN_SECONDS},
            )
        case sqlalchemy.exc.TimeoutError():
            return TimedOut(
                "All our connections are in use.",
                hint="Nothing was asked of the database. Try again; if it lasts: agent-console doctor",
            )
        case pg.ReadOnlySqlTransaction():
            return DatabaseUnavailable(
                "This database takes no changes; it may be a standby.",
                hint="Name its primary in the DSN, or all hosts with target_session_attrs=read-write.",
            )
        case pg.UndefinedTable() | pg.UndefinedColumn() | pg.UndefinedFunction():
            return SchemaMismatch(
                "The database does not have the schema of this program.", hint="Run: agent-console db migrate"
            )
        case pg.InsufficientPrivilege():
            return DatabaseUnavailable(
                f"The database user may not do this: {original.diag.message_primary}.",
                hint="Have an administrator of the database run: grant agent_console_app to <the user>",
            )
        case psycopg.IntegrityError():
            return _broken_rule(original)
        case psycopg.DataError():
            return Invalid(
                "A value can't be stored as it is.",
                hint="Send text without NUL characters, and numbers no larger than they can be meant.",
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() | OSError():
            return unreachable(dsn, original)
        case _:
            return _unknown(original)


def _broken_rule(error: psycopg.IntegrityError) -> ConsoleError:
    rule = error.diag.constraint_name or error.diag.column_name or ""
    match error:
        case pg.UniqueViolation():
            return Conflict(
                TAKEN.get(rule, "Such a row exists already."),
                hint="Look at what is there, and change that instead.",
                details={"rule": rule},
            )
        case pg.ForeignKeyViolation():
            return NotFound(
                "Something this refers to does not exist.",
                hint="Check the ids; what they name may have been deleted.",
                details={"rule": rule},
            )
        case pg.CheckViolation() | pg.NotNullViolation():
            return Invalid(
                "A value is outside its bounds.",
                hint=f"It breaks the database's rule {rule}." if rule else "",
                details={"rule": rule},
            )
        case _:
            return _unknown(error)


def _unknown(error: object) -> ConsoleError:
    return Internal(
        "Something went wrong inside agent-console.",
        hint="Try again; if it stays so, report it with the log.",
        details={"kind": type(error).__name__},
    )

"""The one family of errors: a code for programs, a sentence for a person, and what to do next.

The server, the command line and the console all render the same error; `ERRORS` maps a code back to its
class, so that an error that crossed HTTP is raised again as what it was.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, TypeAlias

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"

ERRORS: dict[str, type["ConsoleError"]] = {}


class ConsoleError(Exception):
    """Something a person can act on. Subclasses fix the code, the HTTP status and the exit code."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, JSONValue] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: Mapping[str, JSONValue] = MappingProxyType(dict(details or {}))

    def __init_subclass__(cls) -> None:
        # A narrower error has its parent's code; what crossed HTTP comes back as the parent.
        ERRORS.setdefault(cls.code, cls)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def body(self) -> dict[str, JSONValue]:
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "details": dict(self.details),
        }


class Internal(ConsoleError):
    """The program is at fault, not its user."""

    code = "internal"
    status = 500
    exit_code = 1


class BadRequest(ConsoleError):
    """The request could not be read at all."""

    code = "bad_request"
    status = 400
    exit_code = 2


class WrongId(ConsoleError):
    """Text that is not an id of the expected kind."""

    code = "wrong_id"
    status = 400
    exit_code = 2


class Unauthorized(ConsoleError):
    """No credential, or one that proves nothing."""

    code = "unauthorized"
    status = 401
    exit_code = 1


class Forbidden(ConsoleError):
    """Known, but with too small a right."""

    code = "forbidden"
    status = 403
    exit_code = 1


class NotFound(ConsoleError):
    """No such thing, or none that the caller may know of."""

    code = "not_found"
    status = 404
    exit_code = 1


class Conflict(ConsoleError):
    """The thing is not in the state the request needs."""

    code = "conflict"
    status = 409
    exit_code = 1


class NotOwner(Conflict):
    """The job is not, or no longer, the caller's to report on."""

    code = "not_owner"


class TooLarge(ConsoleError):
    """More than anyone is willing to read."""

    code = "too_large"
    status = 413
    exit_code = 2


class Invalid(ConsoleError):
    """A value outside its bounds; `details` names each field."""

    code = "invalid"
    status = 422
    exit_code = 2


class RateLimited(ConsoleError):
    """Too much, too fast; `details` says when to come back."""

    code = "rate_limited"
    status = 429
    exit_code = 1


class AgentUnavailable(ConsoleError):
    """The agent could not be woken in time."""

    code = "agent_unavailable"
    status = 503
    exit_code = 1


class CannotConnect(ConsoleError):
    """Nobody answers at the address."""

    code = "cannot_connect"
    status = 503
    exit_code = 3


class DatabaseUnavailable(ConsoleError):
    """PostgreSQL cannot be reached or started."""

    code = "database_unavailable"
    status = 503
    exit_code = 3


class SchemaMismatch(ConsoleError):
    """The database is older or newer than this program."""

    code = "schema_mismatch"
    status = 503
    exit_code = 3


LOOK_FIRST = "Whether a change was made is not known: look before you try again."


class TimedOut(ConsoleError):
    """The answer did not come in time; nothing is known about the outcome."""

    code = "timed_out"
    status = 504
    exit_code = 3


class ConfigError(ConsoleError):
    """The configuration can't be used as it is."""

    code = "config"
    status = 400
    exit_code = 2

"""What a declared operation is."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from agent_console.domain.permissions import Permission
from agent_console.domain.records import Request


class Verb(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered", bound=BaseModel)

_PATH_FIELD = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Operation(Generic[Asked, Answered]):
    """What can be asked of a repository.

    `name` is noun.verb and becomes the command line's `noun verb`. Fields of the request that stand in the
    path travel there; the others travel as the query of a GET and as the body of everything else. `audit`
    names the action that a changing operation writes in its own transaction; one that only `writes` changes
    something that is no act of anybody's; one that `tells` only reads, but somebody's reading may have to be
    written down. A `public` one needs no credential, because it brings its own; a
    `danger` asks a person twice. `waits_seconds` is how much longer than usual the answer may take;
    `per_minute` is how often one credential may ask a server for it. A `batched` one takes a BatchRequest and
    answers with a Batch: one call is one step, and whoever wants all of it asks until there is no next. `fits`
    tells of a record whether the operation makes sense for it as it is, so that nobody is offered what can't be.
    `accepted` tells of an answer that what was asked for has yet to happen: over HTTP it is a 202.
    """

    name: str
    summary: str
    verb: Verb
    path: str
    request: type[Asked]
    answer: type[Answered]
    permission: Permission | None
    audit: str | None = None
    danger: bool = False
    created: bool = False
    public: bool = False
    writes: bool = False
    tells: bool = False
    waits_seconds: float = 0.0
    per_minute: int | None = None
    batched: bool = False
    fits: Callable[[Any], bool] | None = None
    accepted: Callable[[Any], bool] | None = None

    @property
    def noun(self) -> str:
        return self.name.partition(".")[0]

    @property
    def action(self) -> str:
        return self.name.partition(".")[2]

    @property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(_PATH_FIELD.findall(self.path))

    @property
    def changes(self) -> bool:
        return self.writes or self.audit is not None


AnyOperation = Operation[Any, Any]

# Sent with every call of a session that must not change anything: the server keeps it to its word.
READ_ONLY_HEADER = "Agent-Console-Read-Only"

"""The short way through the server, for what is asked most: pages that PostgreSQL puts into JSON itself, and what
agents report on their jobs.

It comes before the routes and takes only what is plainly in order. Whatever is not, from a misspelt field to a
credential that was revoked, goes on to the route, which finds out what is wrong and says so.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request as Asking
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_console.domain.audit import NOWHERE
from agent_console.domain.errors import ConsoleError, RateLimited, Unauthorized
from agent_console.domain.ids import OperatorTokenId
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Request
from agent_console.domain.secrets import Secret
from agent_console.repository.operations import OPERATIONS, AnyOperation, Verb
from agent_console.repository.postgres.identify import Identify, by_token
from agent_console.repository.postgres.passed_through import as_json_of
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server.arrival import arrival_of
from agent_console.server.credentials import place_of
from agent_console.server.failures import answer

Answering = Callable[[PostgresRepository, Request], Awaitable[bytes | None]]
Values = dict[str, object]


@dataclass(frozen=True)
class ShortWay:
    """Another route to an operation; `path` is what the log calls it."""

    operation: AnyOperation
    pattern: re.Pattern[str]
    answering: Answering

    @property
    def path(self) -> str:
        return self.operation.path

    def asked(self, in_path: Values, values: Values | None) -> Request | None:
        """None when something is wrong with it; what stands in the path stands nowhere else."""
        if values is None or in_path.keys() & values.keys():
            return None
        try:
            asked: Request = self.operation.request.model_validate(values | in_path)
        except (ValidationError, ConsoleError):
            return None
        return asked


def _answering(operation: AnyOperation) -> Answering | None:
    """Reports of agents have no limits of their own and nothing to wait for, and no place is told of them."""
    if operation.verb is Verb.GET:
        return as_json_of(operation)
    special = operation.public or operation.created or operation.accepted or operation.per_minute
    if special or operation.waits_seconds or operation.permission is not Permission.ACT_AS_AGENT:
        return None

    async def report(repository: PostgresRepository, asked: Request) -> bytes:
        answered: BaseModel = await repository.call(operation, asked)
        return answered.model_dump_json().encode()

    return report


def _short_ways(verb: Verb) -> tuple[ShortWay, ...]:
    ways = ((operation, _answering(operation)) for operation in OPERATIONS if operation.verb is verb)
    return tuple(
        ShortWay(operation, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", operation.path)), answering)
        for operation, answering in ways
        if answering is not None
    )


class PassedThrough:
    """Stands where a request's body is there in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.ways = {verb.value: _short_ways(verb) for verb in (Verb.GET, Verb.POST)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ways = self.ways.get(scope["method"], ()) if scope["type"] == "http" else ()
        found = next(((way, match) for way in ways if (match := way.pattern.fullmatch(scope["path"]))), None)
        if found is None:
            await self.app(scope, receive, send)
            return
        way, match = found
        body, receive = (b"", receive) if way.operation.verb is Verb.GET else await _kept(receive)
        asked = way.asked(match.groupdict(), _values(scope, way, body)) if arrival_of(scope).word else None
        reply = None if asked is None else await self._reply(scope, way, asked)
        if reply is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = way
        await reply(scope, receive, send)

    async def _reply(self, scope: Scope, way: ShortWay, asked: Request) -> Response | None:
        """None when the route has to say what is wrong with the credential; nothing has happened then."""
        state, arrival = scope["app"].state, arrival_of(scope)
        try:
            state.bad_credentials.refuse_blocked(arrival.counted)
            secret = Secret.parse(arrival.word or "")
            body = await way.answering(PostgresRepository(state.backend, _identify(scope, secret)), asked)
        except (Unauthorized, RateLimited):
            return None
        except ConsoleError as error:
            return answer(error)
        return None if body is None else Response(body, media_type="application/json")


def _identify(scope: Scope, secret: Secret) -> Identify:
    """Only where a person comes in from is kept."""
    return by_token(secret, place_of(Asking(scope)) if isinstance(secret.owner, OperatorTokenId) else NOWHERE)


def _values(scope: Scope, way: ShortWay, body: bytes) -> Values | None:
    """What does not stand in the path; None when it can't be told."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if way.operation.verb is Verb.GET:
        return dict(query) if len(dict(query)) == len(query) else None
    kinds = [kind for name, kind in scope["headers"] if name == b"content-type"]
    if query or kinds != [b"application/json"]:
        return None
    try:
        values = from_json(body, allow_inf_nan=False)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


async def _kept(receive: Receive) -> tuple[bytes, Receive]:
    """The body, and whoever reads it again."""
    first = await receive()
    unread: list[Message] = [first]

    async def again() -> Message:
        return unread.pop() if unread else await receive()

    return first.get("body", b""), again

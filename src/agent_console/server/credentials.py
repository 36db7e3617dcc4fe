"""Read the credential a request brings; whether it is valid the repository asks the database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.requests import HTTPConnection

from agent_console.domain.audit import Place
from agent_console.domain.errors import Unauthorized
from agent_console.domain.identity import Caller
from agent_console.domain.ids import TeamId
from agent_console.domain.secrets import Secret
from agent_console.repository.operations import AnyOperation
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from agent_console.repository.postgres.work import no_credential
from agent_console.server import pace
from agent_console.server.arrival import arrival_of
from agent_console.server.bad_credentials import BadCredentials, tell, tell_failure
from agent_console.server.client_address import read_address

PROGRAM_LENGTH = 200


class _Credential(HTTPBearer):
    """FastAPI's own would read the header once more, and perhaps another one."""

    async def __call__(self, request: HTTPConnection) -> HTTPAuthorizationCredentials | None:
        word = arrival_of(request.scope).word
        return None if word is None else HTTPAuthorizationCredentials(scheme=self.model.scheme, credentials=word)


bearer = _Credential(
    auto_error=False,
    scheme_name="key",
    description="opt_key_… of a person, agt_key_… of an agent or wkt_key_… of a worker, as shown when minted",
)


class _Introduction(BaseModel):
    """The one part of a public request that says whose door was tried."""

    token: str


async def bad_credentials_of(request: Request) -> BadCredentials:
    """One count for each server."""
    counting: BadCredentials = request.app.state.bad_credentials
    return counting


def place_of(request: Request) -> Place:
    """What a stranger's program calls itself is kept short and plain."""
    address = read_address(arrival_of(request.scope).client or "")
    if isinstance(address, IPv6Address):
        # Without the name of a link of this machine, which says nothing elsewhere.
        address = IPv6Address(int(address))
    named = request.headers.get("User-Agent", "")[:PROGRAM_LENGTH]
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in named)
    return Place(address, plain or None)


@asynccontextmanager
async def counted(request: Request, counting: BadCredentials, word: str | None) -> AsyncIterator[None]:
    """Refuse who is shut out; count what turns out to be bad. Without a word it is in the request's body."""
    address = arrival_of(request.scope).counted
    counting.refuse_blocked(address)
    try:
        yield
    except Unauthorized:
        team_id = _team_of(await _introduced(request) if word is None else word)
        if team_id is not None and counting.is_news(address):
            await tell_failure(request.app.state.backend, address, team_id)
        if (block := counting.failed(address, team_id)) is not None:
            await tell(request.app.state.backend, block)
        raise


async def _introduced(request: Request) -> str:
    try:
        return _Introduction.model_validate_json(await request.body()).token
    except ValidationError:
        return ""


def _team_of(word: str) -> TeamId | None:
    try:
        return Secret.parse(word).team_id
    except Unauthorized:
        return None


Counting = Annotated[BadCredentials, Depends(bad_credentials_of)]
Brought = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def repository_for(
    request: Request, counting: Counting, credential: Brought
) -> AsyncIterator[PostgresRepository]:
    """The caller's own view of the database. To bring no credential is no attempt at one."""
    if credential is None:
        raise Unauthorized("This needs a credential.", hint="Send one header: Authorization: Bearer opt_key_…")
    backend: Backend = request.app.state.backend
    async with counted(request, counting, credential.credentials):
        place = place_of(request)
        yield PostgresRepository(backend, by_token(Secret.parse(credential.credentials), place), place=place)


async def public_repository(request: Request, counting: Counting) -> AsyncIterator[PostgresRepository]:
    """For operations that bring their own credential in their request."""
    backend: Backend = request.app.state.backend

    async def nobody(connection: AsyncConnection) -> Caller:
        raise no_credential()

    async with counted(request, counting, None):
        yield PostgresRepository(backend, nobody)


PublicRepository = Annotated[PostgresRepository, Depends(public_repository)]
CallerRepository = Annotated[PostgresRepository, Depends(repository_for)]


def keeps_pace(operation: AnyOperation, per_minute: int) -> Callable[..., Awaitable[None]]:
    """Refuses whoever asks for the operation too often, and has it written down once a minute."""

    async def keep(request: Request, repository: CallerRepository, credential: Brought) -> None:
        counting: pace.Pace = request.app.state.pace
        secret = Secret.parse("" if credential is None else credential.credentials)
        if (refusal := counting.ask(operation.name, secret.hash, per_minute)) is None:
            return
        if refusal.first:
            await pace.tell(repository, operation.name, per_minute)
        raise pace.too_often(operation, refusal)

    return keep

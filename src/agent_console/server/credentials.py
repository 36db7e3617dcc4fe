"""Read the credential a request brings; whether it is valid the repository asks the database."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.errors import Unauthorized
from agent_console.domain.identity import Caller
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository

bearer = HTTPBearer(
    auto_error=False, scheme_name="operator token", description="opt_key_… as shown when it was minted"
)


def repository_for(
    request: Request, credential: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> PostgresRepository:
    """The caller's own view of the database."""
    if credential is None:
        raise Unauthorized("This needs a credential.", hint="Send the header: Authorization: Bearer opt_key_…")
    backend: Backend = request.app.state.backend
    return PostgresRepository(backend, by_token(Secret.parse(credential.credentials)))


def public_repository(request: Request) -> PostgresRepository:
    """For operations that bring their own credential in their request."""
    backend: Backend = request.app.state.backend

    async def nobody(connection: AsyncConnection) -> Caller:
        raise Unauthorized("This needs a credential.")

    return PostgresRepository(backend, nobody)


PublicRepository = Annotated[PostgresRepository, Depends(public_repository)]
CallerRepository = Annotated[PostgresRepository, Depends(repository_for)]

"""Wire the server together."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from agent_console import __version__
from agent_console.domain.errors import ConsoleError
from agent_console.repository.postgres.duties import duties_done
from agent_console.repository.postgres.repository import Backend
from agent_console.server.bad_credentials import BadCredentials
from agent_console.server.client_address import TrustedProxies
from agent_console.server.failures import add_failures, answer
from agent_console.server.limits import BodyLimit
from agent_console.server.metrics import add_metrics
from agent_console.server.pace import Pace
from agent_console.server.routes import add_routes
from agent_console.server.stream import add_stream


def add_health(app: FastAPI, backend: Backend) -> None:
    @app.get("/healthz", tags=["health"], summary="The process lives.")
    async def healthz() -> dict[str, str]:
        return {"status": "alive", "version": __version__}

    @app.get("/readyz", tags=["health"], summary="The database answers and has the right schema.")
    async def readyz() -> JSONResponse:
        try:
            await backend.database.within_time(backend.ready())
        except ConsoleError as error:
            return answer(error, 503)
        return JSONResponse({"status": "ready"})


def build_app(backend: Backend, *, trusted_proxies: Sequence[str] = ()) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with duties_done(backend) as app.state.duties:
            yield
        await backend.close()

    app = FastAPI(
        title="agent-console",
        version=__version__,
        summary="The control plane behind the console: pool, queue, conversations, policy, audit.",
        lifespan=lifespan,
        docs_url="/docs",
        redoc_url=None,
    )
    app.state.backend = backend
    app.state.trusted_proxies = TrustedProxies.of(trusted_proxies)
    app.state.bad_credentials = BadCredentials()
    app.state.pace = Pace()
    app.add_middleware(BodyLimit)
    add_failures(app)
    add_health(app, backend)
    add_routes(app)
    add_stream(app)
    add_metrics(app)
    return app

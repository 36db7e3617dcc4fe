"""Wire the server together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from agent_console import __version__
from agent_console.domain.errors import ConsoleError
from agent_console.repository.operations import NOUNS
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.repository import Backend
from agent_console.server.access_log import Write
from agent_console.server.allowed import Allowed
from agent_console.server.bad_credentials import BadCredentials
from agent_console.server.client_address import TrustedProxies
from agent_console.server.description import DescribedApp
from agent_console.server.failures import ERROR_RESPONSES, add_failures, answer
from agent_console.server.leaving import Leaving
from agent_console.server.limits import RequestLimit
from agent_console.server.metrics import add_metrics
from agent_console.server.open_at_once import OpenAtOnce, StreamLimit
from agent_console.server.overall_pace import Buckets, OverallPace
from agent_console.server.pace import Pace
from agent_console.server.passed_through import PassedThrough
from agent_console.server.reception import Reception
from agent_console.server.routes import add_routes
from agent_console.server.stream import add_stream
from agent_console.server.tracing import Tracing
from agent_console.tracing import traces_of

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig


def add_health(app: FastAPI, backend: Backend) -> None:
    @app.get("/healthz", operation_id="healthz", tags=["health"], summary="The process lives.")
    async def healthz() -> dict[str, str]:
        return {"status": "alive", "version": __version__}

    @app.get(
        "/readyz",
        operation_id="readyz",
        tags=["health"],
        summary="The database answers and has the right schema.",
        response_model=dict[str, str],
        responses=ERROR_RESPONSES,
    )
    async def readyz() -> JSONResponse:
        try:
            await backend.database.within_time(backend.ready())
        except ConsoleError as error:
            return answer(error, 503)
        return JSONResponse({"status": "ready"})


DEFAULT_ALLOWED = Allowed()
ABOUT = """
Send your credential as `Authorization: Bearer …`. A list is a page: ask again with `after` set to its `next` until
that is null. A refusal is `{code, message, hint, details}` with its status; a 429 says in `Retry-After` when to
come back.

An agent comes in with `agents_register`, sends `heartbeat_send` about every 30 s, and asks `claims_take` for jobs
with `wait_seconds`; it renews, reports and ends each with the `attempt` it was given.
"""
# FastAPI's own would tell a collector what stands in paths, queries and errors. Ours names operations.
NO_TELEMETRY: "TelemetryConfig" = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
TAGS = [{"name": noun, "description": told} for noun, told in NOUNS.items()] + [
    {"name": "changes", "description": "Live streams of server-sent events."},
    {"name": "health", "description": "Whether the server lives and can work."},
]


def build_app(
    backend: Backend,
    *,
    trusted_proxies: Sequence[str] = (),
    allowed: Allowed = DEFAULT_ALLOWED,
    access_log: Write | None = None,
) -> FastAPI:
    """`access_log` is given a line for each request; without one nobody is told."""

    traces = traces_of("agent-console-server")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with duties_done(backend) as app.state.duties:
            yield
        await backend.close()
        if traces is not None:
            await asyncio.to_thread(traces.close)

    app = DescribedApp(
        title="agent-console",
        version=__version__,
        summary="The control plane behind the console: pool, queue, conversations, policy, audit.",
        description=ABOUT,
        lifespan=lifespan,
        docs_url="/docs",
        redoc_url=None,
        openapi_tags=TAGS,
        telemetry=NO_TELEMETRY,
        # It would lead to whatever host the client says that we are.
        redirect_slashes=False,
    )
    app.state.backend = backend
    app.state.trusted_proxies = TrustedProxies.of(trusted_proxies)
    app.state.bad_credentials = BadCredentials()
    app.state.leaving = Leaving(backend.queue.waiting.let_go)
    app.state.pace = Pace()
    app.state.credential_buckets = Buckets()
    app.state.address_buckets = Buckets()
    app.state.open_at_once = OpenAtOnce(allowed)
    app.add_middleware(PassedThrough)
    app.add_middleware(RequestLimit)
    add_failures(app)
    add_health(app, backend)
    add_routes(app)
    add_stream(app)
    add_metrics(app)
    # The last one is the first to see a request.
    app.add_middleware(StreamLimit)
    app.add_middleware(OverallPace, allowed=allowed)
    if traces is not None:
        app.add_middleware(Tracing, traces=traces)
    app.add_middleware(Reception, write=access_log)
    return app

"""The real server on a real socket, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.listening import QUIET_SECONDS, address_of, listening_socket


@asynccontextmanager
async def serving(dsn: str, *, port: int = 0, backend: Backend | None = None) -> AsyncIterator[str]:
    """Yields the server's address. A backend that is given is closed with the server."""
    listening = listening_socket("127.0.0.1", port)
    app = build_app(backend or Backend(dsn))
    config = uvicorn.Config(
        app,
        log_level="error",
        proxy_headers=False,
        timeout_keep_alive=QUIET_SECONDS,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield address_of(listening)
    finally:
        server.should_exit = True
        await running
        listening.close()

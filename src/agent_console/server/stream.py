"""Live changes as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing
from agent_console.repository.operations import POOL_STATUS
from agent_console.repository.port import Change
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server.credentials import CallerRepository
from agent_console.server.failures import ERROR_RESPONSES

KEEP_ALIVE_SECONDS = 5.0


async def events(repository: PostgresRepository) -> AsyncIterator[str]:
    """Changes as they come, with a sign of life in silence; every few seconds a look whether the reader is
    still welcome, however much there is to tell."""
    changes = repository.changes()
    coming: asyncio.Task[Change] | None = None
    clock = asyncio.get_running_loop().time
    look_again = clock() + KEEP_ALIVE_SECONDS
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({coming}, timeout=max(0.0, look_again - clock()))
            if done:
                yield f"event: change\ndata: {coming.result().model_dump_json()}\n\n"
                coming = None
            else:
                yield ": still here\n\n"
            if clock() >= look_again:
                await repository.call(POOL_STATUS, Nothing())
                look_again = clock() + KEEP_ALIVE_SECONDS
    except ConsoleError as error:
        yield f"event: end\ndata: {error.code}\n\n"
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, ConsoleError, StopAsyncIteration):
                await coming
        await changes.aclose()


def add_stream(app: FastAPI) -> None:
    @app.get(
        "/v1/changes",
        name="changes",
        operation_id="changes",
        summary="Live notices of what changed, as server-sent events.",
        tags=["changes"],
        response_class=StreamingResponse,
        responses=ERROR_RESPONSES | {200: {"content": {"text/event-stream": {}}}},
    )
    async def changes(repository: CallerRepository) -> StreamingResponse:
        # Whoever may see the fleet may hear of its changes.
        await repository.call(POOL_STATUS, Nothing())
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(repository), media_type="text/event-stream", headers=headers)

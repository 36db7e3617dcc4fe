"""Live changes as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.repository.port import Change
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server.credentials import CallerRepository
from agent_console.server.failures import ERROR_RESPONSES

KEEP_ALIVE_SECONDS = 5.0


async def events(repository: PostgresRepository) -> AsyncIterator[str]:
    """Changes as they come; in silence a sign of life, and a look whether the reader is still welcome."""
    changes = repository.changes()
    coming: asyncio.Task[Change] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({coming}, timeout=KEEP_ALIVE_SECONDS)
            if done:
                yield f"event: change\ndata: {coming.result().model_dump_json()}\n\n"
                coming = None
                continue
            yield ": still here\n\n"
            await repository.call(ME, Nothing())
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
        await repository.call(ME, Nothing())
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(repository), media_type="text/event-stream", headers=headers)

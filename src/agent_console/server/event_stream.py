"""Server-sent events on the wire: signs of life in silence, and an end for whoever no longer takes anything."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_console.server.attended import until_gone
from agent_console.server.leaving import Leaving

# Whoever takes nothing for so long is gone, whatever their connection says.
STUCK_SECONDS = 30.0
# What comes while there is much leaves together.
GATHER_SECONDS = 0.02

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
STILL_HERE = ": still here\n\n"

Events = AsyncGenerator[str, None]


def event(name: str, data: str, *, id: int | None = None) -> str:
    """`data` is one line."""
    numbered = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{numbered}data: {data}\n\n"


class EventStream(Response):
    """Sends what a generator of events gives, and closes it when the client is gone or the server stops.

    `first` was asked of it already, so that a refusal could still become an answer of its own.
    """

    media_type = MEDIA_TYPE

    def __init__(self, first: str, events: Events, *, keep_alive: float) -> None:
        self.status_code = 200
        self.background = None
        self._first = first
        self._events = events
        self._keep_alive = keep_alive
        self.init_headers(HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(until_gone(receive))
        leaving: Leaving = scope["app"].state.leaving
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            with suppress(TimeoutError), leaving.telling(gone.cancel):
                await self._send_all(send, gone)
                await _send(send, "", more=False)
        finally:
            gone.cancel()
            await asyncio.wait({gone})
            await self._events.aclose()

    async def _send_all(self, send: Send, gone: "asyncio.Task[None]") -> None:
        coming: asyncio.Task[str | None] | None = None
        text: str | None = self._first
        try:
            while text is not None and not gone.done():
                await _send(send, text)
                await asyncio.sleep(GATHER_SECONDS)
                coming = coming or asyncio.create_task(_next(self._events))
                await asyncio.wait({coming, gone}, timeout=self._keep_alive, return_when=asyncio.FIRST_COMPLETED)
                text = STILL_HERE
                if coming.done():
                    text, coming = coming.result(), None
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.wait({coming})


async def _next(events: Events) -> str | None:
    return await anext(events, None)


async def _send(send: Send, text: str, *, more: bool = True) -> None:
    async with asyncio.timeout(STUCK_SECONDS):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

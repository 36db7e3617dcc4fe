"""The outermost part of the server: every request gets an id, every answer carries it, none leaves unlogged."""

import asyncio
import logging
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_console.domain.errors import Internal
from agent_console.domain.redact import redact
from agent_console.domain.safe_text import safe_text
from agent_console.server.access_log import Sent, Write, line_of
from agent_console.server.arrival import Arrival, arrival_of
from agent_console.server.failures import answer
from agent_console.server.leaving import stopping

# Answers are for who asked, and are what they say they are.
SAFE_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))

log = logging.getLogger("agent_console.server")


class Reception:
    def __init__(self, app: ASGIApp, write: Write | None) -> None:
        self.app = app
        self.write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, sent = perf_counter(), Sent()
        arrival = Arrival.of(scope, scope["app"].state.trusted_proxies)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status = message["status"]
                message["headers"] = _with_ours(message["headers"], arrival.request_id)
            sent.bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._answered(scope, receive, marked, sent)
        finally:
            if self.write is not None:
                self.write(line_of(scope, arrival, sent, perf_counter() - began))

    async def _answered(self, scope: Scope, receive: Receive, send: Send, sent: Sent) -> None:
        """What nobody expected is told to the log in full, and to the client by the request's id only."""
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:
            # Only a server that stops does that, to whoever still works when its patience is over.
            if sent.status is None:
                await answer(stopping())(scope, receive, send)
        except Exception:
            if sent.status is not None:
                raise
            request_id = arrival_of(scope).request_id
            # Anything may stand in an address, and a log is read in a terminal.
            path = safe_text(redact(scope["path"]))
            log.exception("request %s failed: %s %s", request_id, scope["method"], path)
            await answer(_broken(request_id))(scope, receive, send)


def _with_ours(headers: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    given = {name for name, _ in headers}
    return [
        *headers,
        *(pair for pair in SAFE_HEADERS if pair[0] not in given),
        (b"x-request-id", request_id.encode()),
    ]


def _broken(request_id: str) -> Internal:
    return Internal(
        "Something went wrong inside agent-console.",
        hint="The server's log says more, under the request's id.",
        details={"request_id": request_id},
    )

"""HTTP on a connection whose other side may be slow or boundless on purpose: what a client owes us, it owes us
soon, and no head is longer than it may be."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_console.server.allowed import HEAD_BYTES, HEAD_SECONDS


class BoundedHttp(HttpToolsProtocol):
    """Closes a connection when a request's head, or a body that was answered already, does not come to its end."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _in_body = False
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head is counted in what was received, because a parser says nothing of a line that has no end."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._look()

    def on_header(self, name: bytes, value: bytes) -> None:
        """What comes after the body is none: who read the head has gone on without it."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._head_bytes = False, True, 0
        super().on_headers_complete()
        self._look()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """The deadline stands from the moment that something is owed; a byte now and then does not move it."""
        if not self._something_is_owed():
            self._forgive()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _something_is_owed(self) -> bool:
        """A connection owes us its first head; later it may rest for as long as it is kept."""
        return self._in_head or (self._in_body and self.cycle is not None and self.cycle.response_complete)

    def _forgive(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

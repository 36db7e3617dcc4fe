"""HTTP on a connection whose other side may be slow or boundless on purpose: what a client owes us, it owes us
soon, and nothing but a body is longer than a head may be."""

import asyncio
from typing import NoReturn

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_console.server.allowed import HEAD_BYTES, MOST_IN_LINE, OWED_SECONDS, TAKEN_BYTES


class Refused(Exception):
    """Whoever parses ends the connection over it."""


class BoundedHttp(HttpToolsProtocol):
    """Ends a connection when it is the client's turn, and for too long nothing comes of it: no end of a head or of
    a body that was answered already, no next request, nobody who takes the answer."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _no_body = 0
    _untaken = 0
    _refusal: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._turn()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """What is no body is counted as it was received: a parser says nothing of a line that has no end."""
        self._no_body += len(data)
        super().data_received(data)
        if self._no_body > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("What stands around the body is too long.")
        if self.transport.is_closing():
            self._look()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._turn()

    def on_header(self, name: bytes, value: bytes) -> None:
        """What comes after the body is none: who read the head has gone on without it."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        upgrading = self.parser.should_upgrade()
        if upgrading and self._announces_body():
            self._refuse("A request with a body can't ask for another protocol.")
        if len(self.pipeline) >= MOST_IN_LINE:
            self._refuse("Too many requests came at once.")
        super().on_headers_complete()
        if upgrading:
            self.cycle.keep_alive = False
        self._in_head, self._no_body = False, 0
        self._turn()

    def _announces_body(self) -> bool:
        """Its parser would take the body for what comes after this request: for another one."""
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and int(value))
            for name, value in self.headers
        )

    def _refuse(self, why: str) -> NoReturn:
        self._refusal = why
        raise Refused

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(self._refusal or msg)

    def on_body(self, body: bytes) -> None:
        self._no_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._no_body = 0
        super().on_message_complete()
        self._turn()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._turn()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._turn()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._turn()

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever would rather speak otherwise is answered as ever, and there is nothing to install for it."""

    def _turn(self) -> None:
        """Something came to its end, and what is owed next is owed from now on; a byte now and then is no end."""
        self._forgive()
        self._look()

    def _look(self) -> None:
        if self._deadline is None and self._is_theirs():
            self._untaken = self.transport.get_write_buffer_size()
            self._deadline = self.loop.call_later(OWED_SECONDS, self._late)

    def _is_theirs(self) -> bool:
        """The body of a request that waits for its answer has a time of its own."""
        return (
            self._in_head or self.cycle.response_complete or self.flow.write_paused or self.transport.is_closing()
        )

    def _late(self) -> None:
        """Whoever still takes what was asked for is waited for; closing alone would wait for the others too."""
        self._deadline = None
        if self._untaken - self.transport.get_write_buffer_size() >= TAKEN_BYTES:
            self._look()
        else:
            self.transport.abort()

    def _forgive(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

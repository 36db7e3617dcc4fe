"""HTTP on a connection whose other side may be slow on purpose: what a client owes us, it owes us soon."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_console.server.allowed import HEAD_SECONDS


class BoundedHttp(H11Protocol):
    """Closes a connection when a request's head, or a body that was answered already, does not come to its end."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
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
        if self.conn.their_state is h11.IDLE:
            return not self.cycle or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _forgive(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

"""A server that stops tells those whom it lets wait, so that each still gets an answer and nobody is cut off."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from agent_console.domain.errors import CannotConnect


class Leaving:
    """`app.state.leaving`: whether the server stops, and who wants to hear of it.

    `let_go` makes claims that wait look once more and answer: a cancelled one could take a job unheard.
    """

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go
        self._begun = False
        self._told: set[Callable[[], object]] = set()

    def begin(self) -> None:
        self._begun = True
        self._let_go()
        for tell in self._told:
            tell()

    @contextmanager
    def telling(self, tell: Callable[[], object]) -> Iterator[None]:
        """Within the block `tell` is called when the server stops: cheaper than a task for every stream."""
        self._told.add(tell)
        try:
            if self._begun:
                tell()
            yield
        finally:
            self._told.discard(tell)


class LeavingServer(uvicorn.Server):
    """Tells its app before it waits for the last answers."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if isinstance(self.config.app, FastAPI):
            leaving: Leaving = self.config.app.state.leaving
            leaving.begin()
        await super().shutdown(sockets)


def stopping() -> CannotConnect:
    hint = "Ask again: another one answers, or this one when it is back."
    return CannotConnect("The server is stopping.", hint=hint)

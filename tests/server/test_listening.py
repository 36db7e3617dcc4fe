"""Whoever knocks is let in soon, also by a server that is busy."""

import asyncio
import socket
from contextlib import ExitStack

import uvloop

from agent_console.server.listening import TAKEN_AT_ONCE, listening_socket, often_heard

CALLERS = 10 * TAKEN_AT_ONCE


class Door(asyncio.Protocol):
    let_in = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Door.let_in += 1


async def looks_until_all_are_in(sockets: list[socket.socket]) -> int:
    """How often the loop has to look around; a busy server gets to it a few times a second."""
    loop, looks = asyncio.get_running_loop(), 0
    servers = [await loop.create_server(Door, sock=one) for one in sockets]
    while Door.let_in < CALLERS:
        await asyncio.sleep(0)
        looks += 1
    for server in servers:
        server.close()
    return looks


def test_many_callers_are_let_in_whenever_the_server_looks() -> None:
    Door.let_in = 0
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        listening = listening_socket("127.0.0.1", 0)
        for _ in range(CALLERS):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        sockets = [stack.enter_context(one) for one in often_heard(listening)]

        looks = runner.run(looks_until_all_are_in(sockets))

    assert looks <= 2 * CALLERS / TAKEN_AT_ONCE

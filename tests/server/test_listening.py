"""Whoever knocks is let in soon, also by a server that is busy."""

import asyncio
import socket
from contextlib import ExitStack

import uvloop

from agent_console.server.listening import TAKEN_AT_ONCE, listening_socket, often_heard

CALLERS = 10 * TAKEN_AT_ONCE


async def looks_until_all_are_in(sockets: list[socket.socket]) -> int:
    """How often the loop has to look around; a busy server gets to it a few times a second."""
    let_in: list[asyncio.BaseTransport] = []

    class Door(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            let_in.append(transport)

    loop, looks = asyncio.get_running_loop(), 0
    servers = [await loop.create_server(Door, sock=one) for one in sockets]
    while len(let_in) < CALLERS:
        await asyncio.sleep(0)
        looks += 1
    for transport in let_in:
        transport.close()
    for server in servers:
        server.close()
        await server.wait_closed()
    return looks


def test_many_callers_are_let_in_whenever_the_server_looks() -> None:
    with ExitStack() as stack:
        listening = listening_socket("127.0.0.1", 0)
        for _ in range(CALLERS):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        sockets = [stack.enter_context(one) for one in often_heard(listening)]

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            looks = runner.run(looks_until_all_are_in(sockets))

    assert looks <= 2 * CALLERS / TAKEN_AT_ONCE

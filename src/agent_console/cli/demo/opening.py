"""The demo: an embedded database of its own, a server on it, a fleet at work, and the console on that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from agent_console.cli.console import can_show
from agent_console.cli.demo.agents_process import AgentsProcess
from agent_console.cli.demo.server_process import ServerProcess
from agent_console.cli.opening import Say, imported, remote

if TYPE_CHECKING:
    from agent_console.repository.port import Repository

AGENTS_COME_SECONDS = 30


@asynccontextmanager
async def opened_demo(server: ServerProcess, say: Say) -> AsyncIterator["Repository"]:
    """Everything up, the console's way in through the server; everything down again at the end."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_leave, server, say)
        say("Starting PostgreSQL …")
        await server.begun()
        agents = await stack.enter_async_context(AgentsProcess(server.folder))
        place, _ = await asyncio.gather(server.serving(say), imported("agent_console.repository.http.repository"))
        # They leave before the server does, so that somebody hears it.
        stack.push_async_callback(agents.leave)
        agents.work_at(place.url, place.token)
        coming = await stack.enter_async_context(_coming(agents, server))
        if not can_show():
            # Who prints the status once can't see them come.
            say("The agents come in …")
            await asyncio.wait({coming})
        yield await stack.enter_async_context(await remote(place.url, place.token))


@asynccontextmanager
async def _coming(agents: AgentsProcess, server: ServerProcess) -> AsyncIterator[asyncio.Task[None]]:
    async def remember() -> None:
        await agents.are_here(AGENTS_COME_SECONDS)
        await server.remember()

    coming = asyncio.create_task(remember(), name="demo-history")
    try:
        yield coming
    finally:
        coming.cancel()
        await asyncio.wait({coming})


async def _leave(server: ServerProcess, say: Say) -> None:
    say("Stopping …")
    await server.leave()

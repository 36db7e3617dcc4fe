"""The demo: an embedded database of its own, a server on it, a fleet at work, and the console on that."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.cli.demo_agents import AgentsProcess
from agent_console.cli.opening import KEY_FILE_VARIABLE, LocalDatabase, Say, local_database, remote
from agent_console.cli.terminal import can_show
from agent_console.domain.errors import CannotConnect, ConsoleError

if TYPE_CHECKING:
    from agent_console.repository.port import Repository

SERVER_STARTS_SECONDS = 30
AGENTS_COME_SECONDS = 30
TOKEN_FILE = "demo.token"


@asynccontextmanager
async def demo(folder: Path, say: Say) -> AsyncIterator["Repository"]:
    """Everything up, the console's way in through the server; everything down again at the end."""
    async with _waking() as server, local_database(folder, say) as database, AsyncExitStack() as stack:
        token = await asyncio.to_thread(_token, database, folder)
        say("Starting the server …")
        agents = await stack.enter_async_context(AgentsProcess(folder))
        url = await stack.enter_async_context(_serving(server, database.working))
        # They leave before the server does, so that somebody hears it.
        stack.push_async_callback(agents.leave)
        agents.work_at(url, token)
        coming = await stack.enter_async_context(_coming(agents, database))
        if not can_show():
            # Who prints the status once can't see them come.
            say("The agents come in …")
            await asyncio.wait({coming})
        yield await stack.enter_async_context(await remote(url, token))


@asynccontextmanager
async def _coming(agents: AgentsProcess, database: LocalDatabase) -> AsyncIterator[asyncio.Task[None]]:
    """When they are here it is written down what they did yesterday."""

    async def remember() -> None:
        # A demo without a past is still a demo; whatever is wrong with the database the console tells.
        with suppress(ConsoleError):
            await agents.are_here(AGENTS_COME_SECONDS)
            await asyncio.to_thread(_remember, database)

    coming = asyncio.create_task(remember(), name="demo-history")
    try:
        yield coming
    finally:
        coming.cancel()
        await asyncio.wait({coming})


def _token(database: LocalDatabase, folder: Path) -> str:
    from agent_console.database.demo_history import ensure_demo_team
    from agent_console.database.operator_token import demo_token

    ensure_demo_team(database.administration)
    return demo_token(database.administration, folder / TOKEN_FILE)


def _remember(database: LocalDatabase) -> None:
    from agent_console.database.demo_history import remember

    remember(database.administration, datetime.now(UTC))


@asynccontextmanager
async def _waking() -> AsyncIterator[Process]:
    """The real server in a process of its own, not yet told what to serve. It ends with us, however we end: it
    watches its input."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent_console.cli.demo_server"),
        env=os.environ | {"PYDANTIC_DISABLE_PLUGINS": "__all__"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        await _end(process)


@asynccontextmanager
async def _serving(process: Process, dsn: str) -> AsyncIterator[str]:
    """Its address, for as long as there is a database."""
    told = {"AGENT_CONSOLE_DSN": dsn, KEY_FILE_VARIABLE: os.environ[KEY_FILE_VARIABLE]}
    if process.stdin is not None:
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(told).encode() + b"\n")
            await process.stdin.drain()
    try:
        yield await _address(process)
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        # Read to the end, or a full pipe would keep the server from leaving.
        await process.communicate()


async def _address(process: Process) -> str:
    if process.stdout is None or process.stderr is None:
        raise CannotConnect("The server was started without a way to hear from it.")
    with suppress(TimeoutError):
        line = await asyncio.wait_for(process.stdout.readline(), SERVER_STARTS_SECONDS)
        if line:
            return line.decode().strip()
    with suppress(ProcessLookupError):
        process.kill()
    said = (await process.stderr.read()).decode(errors="replace").strip()
    raise CannotConnect("The server did not start.", hint=said[-500:] or "It said nothing about why.")

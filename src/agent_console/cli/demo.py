"""The demo: an embedded database of its own with an example fleet, a server on it, and the console on that."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.cli.opening import LocalDatabase, Say, local_database, remote
from agent_console.domain.errors import CannotConnect, ConsoleError

if TYPE_CHECKING:
    from agent_console.repository.port import Repository

HEARTBEAT_SECONDS = 30
SERVER_STARTS_SECONDS = 30
TOKEN_FILE = "demo.token"


@asynccontextmanager
async def demo_database(folder: Path, say: Say) -> AsyncIterator[LocalDatabase]:
    """The demo's own database, filled when it is empty, with its agents kept alive."""
    async with local_database(folder, say) as database:
        from agent_console.database import example_fleet, example_story

        say("Looking after the example fleet …")
        now = datetime.now(UTC)
        await asyncio.to_thread(example_fleet.fill, database.administration, now)
        await asyncio.to_thread(example_story.fill, database.administration, now)
        alive = asyncio.create_task(_keep_alive(database.administration))
        try:
            yield database
        finally:
            alive.cancel()
            with suppress(asyncio.CancelledError):
                await alive


async def _keep_alive(dsn: str) -> None:
    from agent_console.database.example_fleet import keep_alive

    while True:
        with suppress(ConsoleError):
            await asyncio.to_thread(keep_alive, dsn)
        await asyncio.sleep(HEARTBEAT_SECONDS)


@asynccontextmanager
async def demo(folder: Path, say: Say) -> AsyncIterator["Repository"]:
    """Everything up, the console's way in through the server; everything down again at the end."""
    async with demo_database(folder, say) as database:
        from agent_console.database.operator_token import demo_token

        token = await asyncio.to_thread(demo_token, database.administration, folder / TOKEN_FILE)
        say("Starting the server …")
        async with _server(database.working) as url, await remote(url, token) as repository:
            yield repository


@asynccontextmanager
async def _server(dsn: str) -> AsyncIterator[str]:
    """The real server in a process of its own. It ends with us, however we end: it watches its input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "agent_console", "serve", "--port", "0", "--with-parent"),
        env=os.environ | {"AGENT_CONSOLE_DSN": dsn},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield await _address(process)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        # Read to the end, or a full pipe would keep the server from leaving.
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
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

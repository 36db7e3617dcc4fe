"""The process of the demo's agents: started beside the server, brought back when it dies, ended with the demo."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

KEYS_FOLDER = "agents"
LOG_FILE = "agents.log"
LEAVES_SECONDS = 5.0
COMES_BACK_SECONDS = (1.0, 2.0, 5.0, 10.0)


class AgentsProcess:
    """It is started at once, to be awake when it is told where to work.

    It ends with us, however we end: it watches its input.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._orders: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._here = asyncio.Event()
        self._living: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._living = asyncio.create_task(self._live(), name="demo-agents")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    def work_at(self, url: str, token: str) -> None:
        words = {"url": url, "token": token, "folder": str(self._folder / KEYS_FOLDER)}
        self._orders.set_result(json.dumps(words).encode() + b"\n")

    async def are_here(self, within: float) -> bool:
        """Whether they have come in; not for ever, because a console can be looked at without them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._here.wait()
        return self._here.is_set()

    async def leave(self) -> None:
        """Once; whoever asks again waits for the same end."""
        if self._living is not None and not self._living.done():
            self._living.cancel()
            await asyncio.wait({self._living})

    async def _live(self) -> None:
        deaths = 0
        # What one that died said is still there when the next one has come.
        (self._folder / LOG_FILE).write_bytes(b"")
        while True:
            await self._once()
            await asyncio.sleep(COMES_BACK_SECONDS[min(deaths, len(COMES_BACK_SECONDS) - 1)])
            deaths += 1

    async def _once(self) -> None:
        with (self._folder / LOG_FILE).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent_console.demo"),
                env=self._environment(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            await self._talk(process)
        finally:
            await asyncio.shield(_end(process))

    async def _talk(self, process: asyncio.subprocess.Process) -> None:
        """Tell it where to work, hear that all are here, and wait for its end."""
        orders = await asyncio.shield(self._orders)
        if process.stdin is None or process.stdout is None:
            return
        with suppress(ConnectionError):
            process.stdin.write(orders)
            await process.stdin.drain()
        while await process.stdout.readline():
            self._here.set()
        await process.wait()

    def _environment(self) -> dict[str, str]:
        """Nobody in there speaks TLS, and reading this machine's authorities would cost every agent 50 ms."""
        inherited = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
        return inherited | {"SSL_CERT_DIR": str(self._folder), "PYDANTIC_DISABLE_PLUGINS": "__all__"}


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closing its input asks it to leave; whoever does not hear that is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(LEAVES_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

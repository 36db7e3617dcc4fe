"""A real server behind a wire that ends it: killed when a job is on its way, before its agent hears of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.cli.program import environment
from tests.faults.world import free_port
from tests.support.fleet import Fleet
from tests.support.warm_start import WarmProgram, warm_python

GIVEN = b'"jobs":[{'
"""How an answer begins that brings a job: by then it is committed."""


class CutAnswer:
    """`url` leads to the server, which is another process, through this wire."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._fleet = fleet
        self._folder = folder
        self._port = free_port()
        self._server: WarmProgram | None = None
        self.url = ""
        self.cut = asyncio.Event()

    def start_server(self) -> None:
        words = ("--dsn", self._fleet.working, "serve", "--no-access-log", "--port", str(self._port))
        variables = environment(self._folder, AGENT_CONSOLE_SERVER_KEY="A" * 43)
        with (self._folder / "server.log").open("ab") as log:
            self._server = warm_python().start("agent_console", *words, environment=variables, stderr=log.fileno())
        assert self._server.stdout is not None
        assert self._server.stdout.readline().startswith("http://"), "the server did not start"

    def kill_server(self) -> None:
        if self._server is not None:
            with self._server as server:
                server.kill()
        self._server = None

    async def carry(self, agent_in: asyncio.StreamReader, agent_out: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self._port)
            asked = asyncio.create_task(_copied(agent_in, server_out, lambda _: True))
            await _copied(server_in, agent_out, self._may_pass)
            asked.cancel()
            server_out.close()
        agent_out.close()

    def _may_pass(self, piece: bytes) -> bool:
        if GIVEN not in piece or self.cut.is_set():
            return True
        self.kill_server()
        self.cut.set()
        return False


async def _copied(
    source: asyncio.StreamReader, to: asyncio.StreamWriter, may_pass: Callable[[bytes], bool]
) -> None:
    with suppress(OSError):
        while piece := await source.read(65_536):
            if not may_pass(piece):
                return
            to.write(piece)
            await to.drain()
    to.close()


@asynccontextmanager
async def cut_answer(fleet: Fleet, folder: Path) -> AsyncIterator[CutAnswer]:
    wire = CutAnswer(fleet, folder)
    wire.start_server()
    listening = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        listening.close()
        wire.kill_server()

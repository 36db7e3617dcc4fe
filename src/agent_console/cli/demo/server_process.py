"""The demo's server, seen from the console: a process of its own that is started as early as can be."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.cli.demo.server import REFUSED, REMEMBER, REMEMBERED, SAYS, SERVING
from agent_console.domain.errors import ERRORS, CannotConnect, ConsoleError, Internal, JSONValue

if TYPE_CHECKING:
    from agent_console.cli.opening import Say


@dataclass(frozen=True)
class Serving:
    """Where the server listens, and the token of the team's administrator."""

    url: str
    token: str


class ServerProcess:
    """It is at work from the moment this is made, and asked later how far it is.

    It ends with us, however we end: it watches its input.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Nobody reads it while the server is well: a pipe would be full one day, and the server stand still.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server has ended
        self._process = subprocess.Popen(  # noqa: S603 - our own program, the arguments are a list
            [sys.executable, "-m", "agent_console.cli.demo.server", str(folder)],
            env=os.environ | {"PYDANTIC_DISABLE_PLUGINS": "__all__"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._heard: list[tuple[str, JSONValue]] = []

    async def begun(self) -> None:
        """It has said something, so its folder is there; what it said is told by `serving`."""
        self._heard.append(await self._next())

    async def serving(self, say: "Say") -> Serving:
        while True:
            what, said = self._heard.pop() if self._heard else await self._next()
            match what, said:
                case str(), str(sentence) if what == SAYS:
                    say(sentence)
                case str(), {"url": str(url), "token": str(token)} if what == SERVING:
                    return Serving(url, token)

    async def remember(self) -> None:
        """When the agents are here it is written down what they did yesterday."""
        with suppress(ConsoleError):
            await asyncio.to_thread(self._ask, REMEMBER)
            while (await self._next())[0] != REMEMBERED:
                pass

    async def leave(self) -> None:
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """Once it has ended, the database has been left too."""
        if self._log.closed:
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        # Read to the end, or a full pipe would keep the server from leaving.
        self._process.communicate()
        self._log.close()

    def _ask(self, order: str) -> None:
        if self._process.stdin is not None:
            with suppress(OSError, ValueError):
                self._process.stdin.write(f"{order}\n")
                self._process.stdin.flush()

    async def _next(self) -> tuple[str, JSONValue]:
        return await asyncio.to_thread(self._read)

    def _read(self) -> tuple[str, JSONValue]:
        process = self._process
        if process.stdout is None:
            raise CannotConnect("The server was started without a way to hear from it.")
        if process.stdout.closed:
            raise CannotConnect("The server has been left.")
        line = process.stdout.readline()
        if line:
            ((what, said),) = json.loads(line).items()
            if what == REFUSED:
                raise _refusal(said)
            return what, said
        process.kill()
        process.wait()
        if self._log.closed:
            raise CannotConnect("The server has been left.")
        raise CannotConnect("The server did not start.", hint=self._last_words() or "It said nothing about why.")

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()[-500:]


def _refusal(body: JSONValue) -> ConsoleError:
    match body:
        case {"code": str(code), "message": str(message), "hint": str(hint), "details": dict(details)}:
            return ERRORS.get(code, Internal)(message, hint=hint, details=details)
    return Internal("The server was refused something, and did not say what.")

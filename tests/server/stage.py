"""The server as `serve` runs it, on a real socket in the test's own event loop."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from agent_console.domain.secrets import Secret
from agent_console.server.bounded_http import BoundedHttp
from agent_console.server.leaving import LeavingServer
from agent_console.server.listening import address_of, http_config, listening_socket
from tests.support.fleet import Fleet

SECONDS = 60


@asynccontextmanager
async def served(app: FastAPI, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yields the server's address."""
    async with running(app, tls) as (url, _):
        yield url


@asynccontextmanager
async def running(
    app: FastAPI, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, Callable[[], list[BoundedHttp]]]]:
    """Yields the server's address, and what tells its connections."""
    listening = listening_socket("127.0.0.1", 0)
    server = LeavingServer(http_config(app, tls))
    serving = asyncio.create_task(server.serve(sockets=[listening]))

    def connections() -> list[BoundedHttp]:
        return [each for each in server.server_state.connections if isinstance(each, BoundedHttp)]

    try:
        yield address_of(listening, "http" if tls is None else "https"), connections
    finally:
        server.should_exit = True
        await serving
        listening.close()


@asynccontextmanager
async def calling(
    app: FastAPI, word: str | None = None, *, host: str = "127.0.0.1", **headers: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose socket has this address, without a socket."""
    sent = ({} if word is None else {"Authorization": f"Bearer {word}"}) | headers
    transport = httpx.ASGITransport(app, client=(host, 40000))
    async with httpx.AsyncClient(transport=transport, base_url="http://server", headers=sent) as client:
        yield client


def key_of(fleet: Fleet, name: str) -> str:
    """A new key of an agent of the fleet."""
    key = Secret.mint(fleet.team_id(), fleet.agent_id(name))
    fleet.execute("update agents set api_key_hash = %s where name = %s", key.hash, name)
    return key.word


def bearer(word: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {word}"}


def raw_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request as it stands on the wire."""
    told = {"Host": "server", "Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def wire(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A plain connection to the server."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def until(holds: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not holds():
        assert loop.time() - begun < SECONDS
        await asyncio.sleep(0.005)

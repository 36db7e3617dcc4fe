"""Any operation asked of the server as a foreign client would: by its address, with whatever values."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, urlencode

import httpx
from fastapi import FastAPI

from agent_console.domain.permissions import Permission
from agent_console.repository.operations import AnyOperation, Verb
from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import Allowed
from agent_console.server.app import build_app
from tests.attacks.request_fields import Values
from tests.server.stage import bearer, calling, key_of, served
from tests.support.acts import AS_ATLAS
from tests.support.asking import ANA
from tests.support.fleet import Fleet

LONGEST_IN_AN_ADDRESS = 4_000
UNHURRIED = Allowed(requests_per_minute=0, address_requests_per_minute=0)
A_NUMBER = "a number"
"""Stands among the values where a number is written as nobody here could hold it."""


@dataclass(frozen=True)
class Server:
    """A server, its log, and two who ask it."""

    app: FastAPI
    ana: httpx.AsyncClient
    atlas: httpx.AsyncClient
    log: list[str] = field(default_factory=list)

    async def asked(
        self, operation: AnyOperation, values: Values, *, number: str = f'"{A_NUMBER}"'
    ) -> httpx.Response:
        """As an agent what only agents may, else as the administrator."""
        as_agent = operation.permission is Permission.ACT_AS_AGENT or operation.name in AS_ATLAS
        client = self.atlas if as_agent else self.ana
        given = {name: value for name, value in values.items() if name not in operation.path_fields}
        in_path = {name: quote(str(values[name]), safe="", errors="replace") for name in operation.path_fields}
        address = operation.path.format_map(in_path)
        if len(address) > LONGEST_IN_AN_ADDRESS:
            address = address[:LONGEST_IN_AN_ADDRESS].rpartition("%")[0]
        if operation.verb is Verb.GET:
            return await client.get(f"{address}?{as_query(given).replace(quote_plus(A_NUMBER), number)}")
        body = json.dumps(given, default=str).replace(f'"{A_NUMBER}"', number).encode()
        return await client.request(
            operation.verb.value, address, content=body, headers={"Content-Type": "application/json"}
        )


def as_query(values: Values) -> str:
    pairs = []
    for name, value in values.items():
        many = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, str(each)[:LONGEST_IN_AN_ADDRESS]) for each in many]
    # An address is UTF-8: half a character can't stand in it.
    return urlencode(pairs, errors="replace")


@asynccontextmanager
async def server(fleet: Fleet) -> AsyncIterator[Server]:
    """Without a socket."""
    backend, log = Backend(fleet.working), list[str]()
    app = build_app(backend, access_log=log.append, allowed=UNHURRIED)
    words = fleet.token(ANA), key_of(fleet, "atlas")
    async with calling(app, words[0]) as ana, calling(app, words[1]) as atlas:
        yield Server(app, ana, atlas, log)
    await backend.close()


@asynccontextmanager
async def server_on_a_socket(fleet: Fleet) -> AsyncIterator[Server]:
    log, words = list[str](), (fleet.token(ANA), key_of(fleet, "atlas"))
    app = build_app(Backend(fleet.working), access_log=log.append, allowed=UNHURRIED)
    async with served(app) as url, AsyncExitStack() as clients:
        ana, atlas = [
            await clients.enter_async_context(httpx.AsyncClient(base_url=url, headers=bearer(word), timeout=60))
            for word in words
        ]
        yield Server(app, ana, atlas, log)

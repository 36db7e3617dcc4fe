"""The access log: one line of JSON for each request, and nothing in it that opens anything."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.ids import RegistrationTokenId
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from tests.server.stage import bearer, calling, served, until
from tests.support.fleet import Fleet


@dataclass
class Logged:
    """A server, and what it logged."""

    app: FastAPI
    lines: list[str]

    @property
    def told(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
async def logged(fleet: Fleet) -> AsyncIterator[Logged]:
    backend, lines = Backend(fleet.working), list[str]()
    yield Logged(build_app(backend, access_log=lines.append, trusted_proxies=["127.0.0.1"]), lines)
    await backend.close()


async def test_a_line_tells_how_a_request_went(logged: Logged, fleet: Fleet) -> None:
    word = fleet.token("ana@example.com")

    async with calling(logged.app, word, host="192.0.2.7") as ana:
        answer = await ana.get(f"/v1/agents/{fleet.agent_id('atlas')}", headers={"X-Request-Id": "look"})

    (line,) = logged.told
    assert list(line) == [
        *("time", "request_id", "method", "path", "status", "ms", "bytes", "address", "credential"),
    ]
    assert {name: line[name] for name in ("request_id", "method", "path", "status", "bytes", "address")} == {
        "request_id": "look",
        "method": "GET",
        "path": "/v1/agents/{agent_id}",
        "status": 200,
        "bytes": len(answer.content),
        "address": "192.0.2.7",
    }
    assert line["credential"] == Secret.parse(word).shown_prefix
    assert isinstance(line["ms"], float)
    assert str(line["time"]).endswith("Z")


async def test_the_address_is_the_one_a_trusted_proxy_names(logged: Logged) -> None:
    async with calling(logged.app) as proxy:
        await proxy.get("/healthz", headers={"X-Forwarded-For": "198.51.100.9"})

    assert [line["address"] for line in logged.told] == ["198.51.100.9"]


async def test_no_secret_no_query_and_no_body_is_logged(logged: Logged, fleet: Fleet) -> None:
    word = fleet.token("ana@example.com")
    registration = Secret.mint(fleet.team_id(), RegistrationTokenId.new()).word
    body = {"name": "SECRET-body", "nonce": "0123456789abcdef", "token": registration}

    async with calling(logged.app, word) as ana, calling(logged.app, "SECRET-malformed") as mistaken:
        await ana.get("/v1/jobs?after=SECRET-query")
        await ana.get(f"/v1/agents/SECRET-path/{word}")
        await ana.get(f"/v1/agents/{word}")
        await ana.get("/v1/me", headers={"Cookie": "SECRET-cookie", "User-Agent": "SECRET-agent"})
        await ana.post("/v1/agents/register", json=body)
        await mistaken.get("/v1/me")

    text = "\n".join(logged.lines)
    assert [line["path"] for line in logged.told] == [
        *("/v1/jobs", None, "/v1/agents/{agent_id}", "/v1/me", "/v1/agents/register", "/v1/me"),
    ]
    assert "SECRET" not in text
    assert word not in text
    assert registration not in text
    assert [line["credential"] for line in logged.told][-1] == "not a key"


async def test_a_line_can_not_be_forged(logged: Logged) -> None:
    async with calling(logged.app) as client:
        await client.get("/v1/a%0A%7B%22status%22:200%7D", headers={"X-Request-Id": '"x"'})

    assert [line["status"] for line in logged.told] == [404]


async def test_a_stream_is_one_line_at_its_end(logged: Logged, fleet: Fleet) -> None:
    headers = bearer(fleet.token("ana@example.com"))
    async with served(logged.app) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        async with asyncio.timeout(60), client.stream("GET", "/v1/changes") as answer:
            await anext(answer.aiter_bytes())
            while_open = list(logged.lines)
        await until(lambda: bool(logged.lines))

    (line,) = logged.told
    assert while_open == []
    assert (line["path"], line["status"]) == ("/v1/changes", 200)
    assert isinstance(line["bytes"], int)
    assert line["bytes"] > 0

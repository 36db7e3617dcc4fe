"""What a request may cost before anyone has looked at it: time, depth, faults and fields; test_server has size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
from fastapi import FastAPI

from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import BODY_BYTES, BODY_DEPTH, HEAD_BYTES, MOST_FAULTS, MOST_FIELDS
from agent_console.server.app import build_app
from agent_console.server.limits import is_deeper
from tests.server.stage import bearer, calling, raw_request, served, wire
from tests.support.fleet import Fleet

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    backend = Backend(fleet.working)
    yield build_app(backend)
    await backend.close()


@pytest.fixture
async def ana(app: FastAPI, fleet: Fleet) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(app, fleet.token("ana@example.com")) as client:
        yield client


def job(levels: int) -> bytes:
    """A new job whose body is so many levels deep."""
    inner = levels - 2
    return b'{"type": "deep", "payload": {"a": ' + b"[" * inner + b"]" * inner + b"}}"


async def test_a_body_as_deep_as_allowed_comes_back_whole(ana: httpx.AsyncClient) -> None:
    made = await ana.post("/v1/jobs", content=job(BODY_DEPTH), headers=JSON)
    read = await ana.get(f"/v1/jobs/{made.json()['id']}")

    assert made.status_code == 201
    assert str(read.json()["payload"]).count("[") == BODY_DEPTH - 2


async def test_a_level_more_is_refused_in_plain_words(ana: httpx.AsyncClient) -> None:
    refused = await ana.post("/v1/jobs", content=job(BODY_DEPTH + 1), headers=JSON)

    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
    assert refused.json()["message"] == "The body is nested more than 64 levels deep."


async def test_depth_can_not_hide_in_another_encoding(ana: httpx.AsyncClient) -> None:
    hidden = job(BODY_DEPTH + 1).decode().replace("deep", "\u2222").encode("utf-16")

    refused = await ana.post("/v1/jobs", content=hidden, headers=JSON)

    assert (refused.status_code, refused.json()["message"]) == (400, "The body is not JSON in UTF-8.")


@pytest.mark.parametrize(
    ("body", "deeper"),
    [
        (b"[[[]]]", False),
        (b"[[[[]]]]", True),
        (b'[{"a": [{}]}]', True),
        (b'[{"a": {}}, [[]], [], {}, [{}]]', False),
        (b'["[[[[[[", "{{{{{{"]', False),
        (b'["\\"[[[[", [[[1]]]]', True),
        (b'["\\\\", [[[1]]]]', True),
        (b'["a\\', False),
        (b"[[[[", True),
        (b"]]]][[", False),
        (b"", False),
    ],
)
def test_depth_counts_brackets_within_brackets_and_none_in_strings(body: bytes, deeper: bool) -> None:
    assert is_deeper(body, 3) is deeper


@pytest.mark.parametrize(
    ("piece", "deeper"),
    [(b"[", True), (b"[],", False), (b'"\\"', False), (b'"', False), (b'["', True), (b"]", False)],
)
def test_no_body_takes_long_to_measure(piece: bytes, deeper: bool) -> None:
    """Measured in squares of its length, one of these would take minutes."""
    body = piece * (BODY_BYTES // len(piece))

    assert is_deeper(body, BODY_DEPTH) is deeper


async def test_faults_are_named_as_long_as_they_are_few(app: FastAPI) -> None:
    """Whoever is refused needs no credential for it, and each fault is told in more bytes than it takes."""
    async with calling(app) as stranger:
        few, many = [
            await stranger.post("/v1/agents/register", json={"capabilities": [1] * faults, "name": "a"})
            for faults in (MOST_FAULTS - 2, BODY_BYTES // 4)
        ]

    fields = few.json()["details"]["fields"]
    assert (few.status_code, len(fields)) == (422, MOST_FAULTS)
    assert (many.status_code, many.json()["details"]["fields"]) == (
        422,
        [{"field": "body", "problem": "has 250002 faults, too many to name"}],
    )


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/stream", "/healthz"])
async def test_a_query_has_no_more_fields_than_can_be_read_soon(ana: httpx.AsyncClient, path: str) -> None:
    """Each is looked for among all the others."""
    names = [f"x{number}=1" for number in range(MOST_FIELDS + 1)]

    read = await ana.get(f"{path}?{'&'.join(names[1:])}")
    refused = await ana.get(f"{path}?{'&'.join(names)}")

    assert read.status_code != 400
    assert (refused.status_code, refused.json()["message"]) == (400, "The query has more than 1,000 fields.")


async def test_a_body_that_trickles_in_is_not_waited_for(
    app: FastAPI, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.server.limits.BODY_SECONDS", 0.2)
    headers = {**bearer(fleet.token("ana@example.com")), **JSON, "Content-Length": "1000"}
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("POST", "/v1/jobs", headers, b"{"))
        answer = (await reader.read()).decode()

    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 408 ")
    assert "connection: close" in head.lower()
    assert '"code":"bad_request"' in body
    assert "The body did not come within 0.2 s." in body


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: ser"], ids=["nothing", "half a head"])
async def test_a_connection_without_a_request_is_closed(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.2)
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(begun)
        answer = await reader.read()

    assert answer == b""


async def test_a_head_without_an_end_is_refused(app: FastAPI) -> None:
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        for _ in range(HEAD_BYTES // 1024 + 1):
            writer.write(b"x" * 1024)
        with suppress(ConnectionError):
            await writer.drain()
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"too long" in answer


async def test_a_second_head_that_trickles_in_is_not_waited_for(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.2)
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("GET", "/healthz", {}))
        first = await reader.readuntil(b'"}')
        writer.write(b"GET /hea")
        rest = await reader.read()

    assert first.startswith(b"HTTP/1.1 200 ")
    assert rest == b""


async def test_a_body_that_goes_on_after_its_refusal_is_cut_off(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.2)
    headers = {"Content-Length": str(BODY_BYTES + 1)}
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("POST", "/v1/jobs", headers, b"{"))
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_request_that_takes_its_time_but_is_whole_is_answered(
    app: FastAPI, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadlines are for what a client owes; an answer that is on its way has none of them."""
    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.05)
    headers = bearer(fleet.token("ana@example.com"))
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        answer = await client.get("/v1/audit/tail", params={"after_position": 2**62, "wait_seconds": 0.5})

    assert answer.status_code == 200

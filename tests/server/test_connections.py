"""What one connection may cost, whoever holds it: so much beside a body, so many requests, so much patience."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from fastapi import FastAPI, Response

from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import BODY_BYTES, HEAD_BYTES, MOST_IN_LINE
from agent_console.server.app import build_app
from agent_console.server.bounded_http import BoundedHttp
from agent_console.server.listening import http_config
from tests.server.stage import bearer, raw_request, running, served, until, wire
from tests.support.asking import ANA
from tests.support.fleet import Fleet

PIECE = b"x" * 1024
HEALTH = raw_request("GET", "/healthz", {})
LARGE = 64_000_000
JOB = b'{"type": "report", "payload": {}}'


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    async def large() -> Response:
        return Response(bytes(LARGE))

    backend = Backend(fleet.working)
    app = build_app(backend)
    app.add_api_route("/large", large)
    yield app
    await backend.close()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.2)


def chunked(path: str, *pieces: bytes, **headers: str) -> bytes:
    head = raw_request("POST", path, headers | {"Transfer-Encoding": "chunked"})
    return head.replace(b"Content-Length: 0\r\n", b"") + b"".join(pieces)


@pytest.mark.parametrize("begun", [b"0\r\nX-Long: ", b"1;long=", b"1\r\nx\r\n0\r\nX-Long: "])
async def test_what_stands_around_a_body_is_no_longer_than_a_head(app: FastAPI, begun: bytes) -> None:
    """A line that comes in pieces is put together anew with each."""
    async with running(app) as (url, connections), asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(chunked("/v1/jobs", begun))
        await until(lambda: bool(connections()))
        (connection,) = connections()
        while not connection.transport.is_closing():
            writer.write(PIECE)
            await asyncio.sleep(0)
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"too long" in answer


async def test_a_large_body_in_small_chunks_has_as_much_around_it_as_it_needs(app: FastAPI) -> None:
    chunks = [b"1\r\nx\r\n"] * HEAD_BYTES
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(chunked("/v1/jobs", *chunks, b"0\r\n\r\n"))
        answer = await reader.readuntil(b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 401 ")


async def test_a_head_may_follow_a_large_body_at_once(app: FastAPI) -> None:
    body = b" " * (HEAD_BYTES * 3)
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("POST", "/v1/jobs", {}, body) + HEALTH[:-2])
        first = await reader.readuntil(b"\r\n\r\n")
        writer.write(HEALTH[-2:])
        second = await reader.readuntil(b"alive")

    assert first.startswith(b"HTTP/1.1 401 ")
    assert b"HTTP/1.1 200 " in second


async def test_so_many_requests_may_come_at_once_and_no_more(app: FastAPI) -> None:
    """Each that waits for its turn is kept with all that belongs to it."""
    allowed, too_many = [HEALTH] * MOST_IN_LINE, [HEALTH] * (2 * MOST_IN_LINE)
    last = raw_request("GET", "/healthz", {"Connection": "close"})
    async with served(app) as url, asyncio.timeout(60):
        async with wire(url) as (reader, writer):
            writer.write(b"".join([*allowed, last]))
            all_of_them = await reader.read()
        async with wire(url) as (reader, writer):
            writer.write(b"".join(too_many))
            refused = await reader.read()

    assert all_of_them.count(b"HTTP/1.1 200 ") == MOST_IN_LINE + 1
    assert refused.count(b"HTTP/1.1 400 ") == 1
    assert refused.count(b"HTTP/1.1 200 ") < MOST_IN_LINE


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("more", [b"\r\n", b"G"])
async def test_who_says_something_after_an_answer_but_asks_nothing_is_let_go(app: FastAPI, more: bytes) -> None:
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(HEALTH)
        await reader.readuntil(b'"}')
        writer.write(more)
        rest = await reader.read()

    assert rest == b""


@pytest.mark.usefixtures("soon")
async def test_who_asks_nothing_after_a_body_that_was_refused_is_let_go(app: FastAPI) -> None:
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("POST", "/v1/jobs", {"Content-Length": str(BODY_BYTES + 1)}))
        refused = await reader.readuntil(b'"details":{}}')
        writer.write(b" " * (BODY_BYTES + 1))
        rest = await reader.read()

    assert refused.startswith(b"HTTP/1.1 413 ")
    assert rest == b""


def unread(url: str, request: bytes) -> socket.socket:
    """A connection on which this was asked, and whose owner takes nothing by itself."""
    host, _, port = url.removeprefix("http://").partition(":")
    asking = socket.create_connection((host, int(port)))
    asking.setblocking(False)
    asking.send(request)
    return asking


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "asked", [["/large"], ["/large", "/healthz"]], ids=["one answer", "and another behind it"]
)
async def test_who_takes_no_answer_is_let_go_with_all_that_waits(app: FastAPI, asked: list[str]) -> None:
    requests = b"".join(raw_request("GET", path, {}) for path in asked)
    async with running(app) as (url, connections), asyncio.timeout(60):
        with unread(url, requests):
            await until(lambda: any(each.transport.get_write_buffer_size() for each in connections()))
            await until(lambda: not connections())


@pytest.mark.usefixtures("soon")
async def test_who_wants_to_be_let_go_and_takes_no_answer_is_let_go(app: FastAPI) -> None:
    async with running(app) as (url, connections), asyncio.timeout(60):
        with unread(url, raw_request("GET", "/large", {"Connection": "close"})):
            await until(lambda: any(each.transport.is_closing() for each in connections()))
            await until(lambda: not connections())


async def test_who_takes_an_answer_slowly_gets_all_of_it(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[BoundedHttp] = []
    late = BoundedHttp._late

    def looking(self: BoundedHttp) -> None:
        looked.append(self)
        late(self)

    monkeypatch.setattr("agent_console.server.bounded_http.OWED_SECONDS", 0.5)
    monkeypatch.setattr(BoundedHttp, "_late", looking)
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("GET", "/large", {}))
        await reader.readuntil(b"\r\n\r\n")
        for times in (1, 2, 3):
            await reader.readexactly(LARGE // 8)
            await until(lambda: len(looked) == times)  # noqa: B023
        rest = await reader.readexactly(LARGE - 3 * (LARGE // 8))

    assert len(rest) == LARGE - 3 * (LARGE // 8)


PROTOCOLS = ("h2c", "websocket", "anything")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_who_would_rather_speak_otherwise_is_answered_as_ever(
    app: FastAPI, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once: what comes behind may be in the other language already."""
    wish = {"Connection": "Upgrade", "Upgrade": protocol}
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("GET", "/healthz", wish))
        writer.write(HEALTH)
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer
    assert caplog.text == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("in_chunks", [False, True])
async def test_a_body_is_never_taken_for_the_next_request(app: FastAPI, protocol: str, in_chunks: bool) -> None:
    wish = {"Connection": "Upgrade", "Upgrade": protocol}
    announced = raw_request("POST", "/v1/jobs", wish | {"Content-Length": str(len(HEALTH))})
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(chunked("/v1/jobs", **wish) if in_chunks else announced)
        answer = await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            writer.write(HEALTH)
            answer += await reader.read()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"can't ask for another protocol" in answer


def test_no_library_that_happens_to_be_there_takes_over_connections() -> None:
    config = http_config(FastAPI())
    config.load()

    assert config.ws_protocol_class is None


async def test_a_length_may_stand_between_spaces(app: FastAPI, fleet: Fleet) -> None:
    spaced = {"Content-Length": f" {len(JOB)} \t", "Content-Type": "application/json"}
    async with served(app) as url, asyncio.timeout(60), wire(url) as (reader, writer):
        writer.write(raw_request("POST", "/v1/jobs", spaced | bearer(fleet.token(ANA)), JOB))
        answer = await reader.readuntil(b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 201 ")

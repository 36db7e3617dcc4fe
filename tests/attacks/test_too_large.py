"""Bodies that are larger than they may be, or than they say: refused early, and not kept in memory meanwhile."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from agent_console.server.allowed import BODY_BYTES
from tests.attacks.over_http import server_on_a_socket
from tests.server.stage import bearer, raw_request, wire
from tests.support.asking import ANA
from tests.support.fleet import Fleet

MEGABYTES = 48
PIECE = b" " * 65_536
PIECES = MEGABYTES * 1_000_000 // len(PIECE)
# Far more than a connection and a refusal need, and far less than the body.
ROOM = 10_000_000
# So many pieces are more than a body may have.
ENOUGH = 2 * BODY_BYTES // len(PIECE)
NO_DETAILS = b'"details":{}}'
JOB = b'{"type": "report", "payload": {}}'


@dataclass(frozen=True)
class Doorstep:
    """A server and the head of a request for a new job."""

    fleet: Fleet
    url: str

    def head(self, *lines: str) -> bytes:
        told = ["POST /v1/jobs HTTP/1.1", "Host: server", "Content-Type: application/json"]
        told += [f"{name}: {value}" for name, value in bearer(self.fleet.token(ANA)).items()]
        return "\r\n".join([*told, *lines, "", ""]).encode()

    def jobs(self) -> int:
        counted = self.fleet.one("select count(*) from jobs")
        assert isinstance(counted, int)
        return counted


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """How many bytes the process has grown by at most since then."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
async def doorstep(fleet: Fleet) -> AsyncIterator[Doorstep]:
    async with server_on_a_socket(fleet) as serving:
        yield Doorstep(fleet, str(serving.ana.base_url).rstrip("/"))


def in_chunks(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


@pytest.mark.parametrize(
    ("length", "piece", "end"),
    [
        (f"Content-Length: {PIECES * len(PIECE)}", PIECE, b""),
        ("Transfer-Encoding: chunked", in_chunks(PIECE), in_chunks(b"")),
    ],
    ids=["announced", "in chunks"],
)
async def test_a_boundless_body_is_refused_while_it_comes_and_is_not_kept(
    doorstep: Doorstep, length: str, piece: bytes, end: bytes
) -> None:
    before = doorstep.jobs()
    async with asyncio.timeout(120), wire(doorstep.url) as (reader, writer):
        with measured() as grown:
            writer.write(doorstep.head(length))
            for _ in range(ENOUGH):
                writer.write(piece)
            answer = await reader.readuntil(NO_DETAILS)
            for _ in range(PIECES - ENOUGH):
                writer.write(piece)
                await writer.drain()
            writer.write(end + raw_request("GET", "/healthz", {}))
            after = await reader.readuntil(b'"}')
            most = grown()

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert (b'"code":"too_large"' in answer, b"1,000,000 bytes" in answer) == (True, True)
    assert after.startswith(b"HTTP/1.1 200 ")
    assert most < ROOM
    assert doorstep.jobs() == before


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_small_body_that_would_unfold_into_a_large_one_is_not_unfolded(
    doorstep: Doorstep, encoding: str
) -> None:
    bomb = (gzip if encoding == "gzip" else zlib).compress(b'{"type": "' + bytes(MEGABYTES * 1_000_000) + b'"}')
    lines = f"Content-Encoding: {encoding}", f"Content-Length: {len(bomb)}"
    async with asyncio.timeout(120), wire(doorstep.url) as (reader, writer):
        with measured() as grown:
            writer.write(doorstep.head(*lines) + bomb)
            answer = await reader.readuntil(NO_DETAILS)
            most = grown()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert most < ROOM


@pytest.mark.parametrize(
    ("length", "status"),
    [(f"{BODY_BYTES + 1}", 413), (f"{2**63 - 1}", 413)]
    + [(word, 400) for word in ("9" * 30, "-1", "0x10", "1_0", "\u0663", "10, 12")],
)
async def test_a_length_that_can_not_be_is_refused_and_nothing_waits_for_it(
    doorstep: Doorstep, length: str, status: int
) -> None:
    async with asyncio.timeout(60), wire(doorstep.url) as (reader, writer):
        writer.write(doorstep.head(f"Content-Length: {length}"))
        answer = await reader.readuntil(b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 %d " % status)


async def test_more_than_was_announced_is_no_part_of_the_body(doorstep: Doorstep) -> None:
    async with asyncio.timeout(60), wire(doorstep.url) as (reader, writer):
        writer.write(doorstep.head(f"Content-Length: {len(JOB)}") + JOB)
        first = await reader.readuntil(b"}")
        writer.write(b'{"more": 1}')
        rest = await reader.read()

    assert (first[:13], b'"payload":{}' in first) == (b"HTTP/1.1 201 ", True)
    assert b"HTTP/1.1 400 " in rest


async def test_less_than_was_announced_is_no_request_at_all(doorstep: Doorstep) -> None:
    before = doorstep.jobs()
    async with asyncio.timeout(60), wire(doorstep.url) as (reader, writer):
        writer.write(doorstep.head(f"Content-Length: {len(JOB) + 1}") + JOB)
        writer.write_eof()
        answer = await reader.read()

    assert answer == b""
    assert doorstep.jobs() == before


async def test_two_lengths_at_once_are_refused(doorstep: Doorstep) -> None:
    """Whoever stands before the server may count in the other way, and take the rest for a request."""
    before = doorstep.jobs()
    async with asyncio.timeout(60), wire(doorstep.url) as (reader, writer):
        writer.write(doorstep.head(f"Content-Length: {len(JOB)}", "Transfer-Encoding: chunked") + in_chunks(JOB))
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert doorstep.jobs() == before

"""Behind a trusted proxy everybody has an address of their own; nobody else can choose one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_console.domain.ids import AgentId
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.bad_credentials import BLOCK_AT
from agent_console.server.client_address import TrustedProxies
from agent_console.server.listening import address_of, listening_socket
from tests.support.fleet import Fleet

PROXY = "127.0.0.1"
ELSEWHERE = "192.0.2.0/24"
BLOCKED = "select resource_id from audit_log where action = 'auth.blocked' order by seq"


@asynccontextmanager
async def proxied(fleet: Fleet, *trusted: str) -> AsyncIterator[httpx.AsyncClient]:
    """A bad credential on a real socket; the client stands where the proxy would, on 127.0.0.1."""
    listening = listening_socket("127.0.0.1", 0)
    app = build_app(Backend(fleet.working), trusted_proxies=trusted)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", proxy_headers=False))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    word = Secret.mint(fleet.team_id(), AgentId.new()).word
    headers = {"Authorization": f"Bearer {word}"}
    try:
        async with httpx.AsyncClient(base_url=address_of(listening), headers=headers, timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        await running
        listening.close()


async def fail(client: httpx.AsyncClient, forwarded: Sequence[str | bytes]) -> list[int]:
    """One attempt for each value of the header."""
    return [
        (await client.get("/v1/me", headers=[(b"X-Forwarded-For", value)])).status_code
        for value in (one.encode() if isinstance(one, str) else one for one in forwarded)
    ]


@pytest.mark.rule("U000-47")
async def test_behind_a_trusted_proxy_each_client_is_counted_alone(fleet: Fleet) -> None:
    async with proxied(fleet, PROXY) as client:
        guilty = await fail(client, ["198.51.100.1"] * (BLOCK_AT + 1))
        neighbour = await fail(client, ["198.51.100.2"])
        at_the_proxy = (await client.get("/v1/me")).status_code

    assert guilty == [401] * BLOCK_AT + [429]
    assert (neighbour, at_the_proxy) == ([401], 401)
    assert fleet.execute(BLOCKED) == [("198.51.100.1",)]


async def test_a_client_can_not_put_another_address_before_its_own(fleet: Fleet) -> None:
    spoofed = [f"203.0.113.{number}, 198.51.100.1" for number in range(BLOCK_AT + 1)]

    async with proxied(fleet, PROXY) as client:
        codes = await fail(client, spoofed)

    assert codes == [401] * BLOCK_AT + [429]
    assert fleet.execute(BLOCKED) == [("198.51.100.1",)]


@pytest.mark.parametrize("trusted", [(), (ELSEWHERE,)], ids=["nobody trusted", "another trusted"])
async def test_who_is_no_trusted_proxy_can_not_choose_an_address(fleet: Fleet, trusted: tuple[str, ...]) -> None:
    claimed = [f"198.51.100.{number}" for number in range(BLOCK_AT)] + ["192.0.2.1"]

    async with proxied(fleet, *trusted) as client:
        codes = await fail(client, claimed)

    assert codes == [401] * BLOCK_AT + [429]
    assert fleet.execute(BLOCKED) == [("127.0.0.1",)]


async def test_nobody_can_block_another_through_the_header(fleet: Fleet) -> None:
    async with proxied(fleet, ELSEWHERE) as client:
        await fail(client, ["198.51.100.1"] * (BLOCK_AT - 1))
        counted = await fail(client, ["198.51.100.2"] * 2)

    assert counted == [401, 429]


GARBAGE: tuple[str | bytes, ...] = (
    "", ",", ", ,", "unknown", "_hidden", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4:",
    "01.02.03.04", "1.2.3.4/8", "::g", "[::1", "[]", "[]:80", "]:[", "1.2.3.4:99999:1", "for=1.2.3.4",
    "'; drop table teams; --", "%s%n", "-1", "0x7f000001", b"\xff\xfe", b"\xd9\xa1.2.3.4", "1.2.3.4\t5",
    "," * 8000, "9" * 8000,
)  # fmt: skip


async def test_garbage_from_a_proxy_counts_for_the_proxy(fleet: Fleet) -> None:
    assert len(GARBAGE) > BLOCK_AT

    async with proxied(fleet, PROXY) as client:
        codes = await fail(client, GARBAGE)

    assert codes == [401] * BLOCK_AT + [429] * (len(GARBAGE) - BLOCK_AT)
    assert fleet.execute(BLOCKED) == [("127.0.0.1",)]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.1, 10.0.0.2"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.1", "203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, ::ffff:10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::2", ["198.51.100.1"], "fd00::2"),
        ("203.0.113.9", ["10.0.0.1"], "203.0.113.9"),
        ("a socket", ["198.51.100.1"], "a socket"),
        (None, ["198.51.100.1"], None),
    ],
)
def test_the_right_most_address_that_is_no_proxy_counts(
    peer: str | None, forwarded: list[str], client: str | None
) -> None:
    proxies = TrustedProxies.of(["10.0.0.0/8", "fd00::1"])

    assert proxies.client_of(peer, forwarded) == client


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=4))
def test_whatever_a_client_sends_the_address_the_proxy_adds_counts(sent: list[str]) -> None:
    proxies = TrustedProxies.of([PROXY])

    assert proxies.client_of(PROXY, [*sent, "198.51.100.1"]) == "198.51.100.1"


@pytest.mark.parametrize("written", ["", "proxy.example.com", "10.0.0.1/8", "10.0.0.0/33", "1.2.3"])
def test_what_is_no_network_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear to be|has host bits set"):
        TrustedProxies.of([written])

"""Whoever looks at a request sees the same credential: limits and the log see that of whoever acts."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from agent_console.domain.ids import AgentId
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import Allowed
from agent_console.server.app import build_app
from tests.server.stage import served, wire
from tests.support.asking import ANA
from tests.support.fleet import Fleet

MOST = 3


@dataclass(frozen=True)
class Door:
    """A server that takes three requests a minute from each credential; what it logs; a key and a forged one."""

    url: str
    lines: list[str]
    key: str
    forged: str

    async def statuses(self, *requests: bytes) -> list[int]:
        """Of the answers to these, one after the other; the last one ends the connection."""
        async with asyncio.timeout(60), wire(self.url) as (reader, writer):
            writer.write(b"".join(requests))
            answers = await reader.read()
        return [int(each[:3]) for each in answers.split(b"HTTP/1.1 ")[1:]]

    @property
    def shown(self) -> list[object]:
        return [json.loads(line)["credential"] for line in self.lines]


@pytest.fixture
async def door(fleet: Fleet) -> AsyncIterator[Door]:
    lines: list[str] = []
    app = build_app(Backend(fleet.working), allowed=Allowed(MOST), access_log=lines.append)
    async with served(app) as url:
        yield Door(url, lines, fleet.token(ANA), Secret.mint(fleet.team_id(), AgentId.new()).word)


def asking(*words: str, last: bool = True) -> bytes:
    head = ["GET /v1/me HTTP/1.1", "Host: server", *(f"Authorization: Bearer {word}" for word in words)]
    return "\r\n".join([*head, *(["Connection: close"] if last else []), "", ""]).encode()


def with_trailer(trailer: str, *lines: str, method: str = "GET", path: str = "/v1/me") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: server", "Connection: close", "Transfer-Encoding: chunked", *lines]
    return "\r\n".join([*head, "", "0", trailer, "", ""]).encode()


async def test_two_credentials_are_none(door: Door) -> None:
    """Whoever stands before us may have looked at the other one."""
    answered = [
        await door.statuses(asking(door.key, door.forged)),
        await door.statuses(asking(door.forged, door.key)),
        await door.statuses(asking(door.key, door.key)),
    ]

    assert answered == [[401]] * 3
    assert door.shown == [None] * 3


async def test_another_word_beside_the_credential_is_no_way_round_its_limit(door: Door) -> None:
    answered = await door.statuses(
        *(asking(door.key, f"word{number}", last=False) for number in range(MOST)), asking(door.key)
    )

    assert answered == [401] * MOST + [200]


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
async def test_the_one_that_is_limited_is_the_one_that_acts(door: Door, scheme: str) -> None:
    one = asking(door.key, last=False).replace(b"Bearer", scheme.encode())
    answered = await door.statuses(*[one] * MOST, asking(door.key))

    assert answered == [200] * MOST + [429]
    assert door.shown == [Secret.parse(door.key).shown_prefix] * (MOST + 1)


async def test_what_comes_after_the_body_is_no_credential(door: Door) -> None:
    answered = await door.statuses(with_trailer(f"Authorization: Bearer {door.key}"))

    assert answered == [401]
    assert door.shown == [None]


async def test_what_comes_after_the_body_takes_no_credential_away(door: Door) -> None:
    own = f"Authorization: Bearer {door.key}"
    answered = await door.statuses(with_trailer(f"Authorization: Bearer {door.forged}", own))

    assert answered == [200]
    assert door.shown == [Secret.parse(door.key).shown_prefix]

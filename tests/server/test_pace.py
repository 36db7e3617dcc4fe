"""Nobody asks more often than declared: told when to come back, written down once, and nobody else's trouble."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.errors import RateLimited
from agent_console.domain.presence import Heartbeat
from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import OPERATIONS
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.pace import WINDOW_SECONDS, Pace, TooOften
from tests.server.clock import Clock
from tests.support.fleet import Fleet
from tests.support.serving import serving

HEARTBEATS = 60


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace(clock, most_remembered=3)


def asked(pace: Pace, times: int, credential: str = "key", operation: str = "beat") -> list[TooOften | None]:
    return [pace.ask(operation, credential, 4) for _ in range(times)]


def test_what_is_refused_does_not_count(pace: Pace, clock: Clock) -> None:
    answers = asked(pace, 6)
    clock.now += WINDOW_SECONDS - 0.5
    still = pace.ask("beat", "key", 4)
    clock.now += 0.5

    assert answers == [None] * 4 + [TooOften(60, first=True), TooOften(60, first=False)]
    assert still == TooOften(1, first=False)
    assert asked(pace, 5) == [None] * 4 + [TooOften(60, first=True)]


def test_the_minute_slides(pace: Pace, clock: Clock) -> None:
    asked(pace, 2)
    clock.now += 45
    asked(pace, 2)
    full = pace.ask("beat", "key", 4)
    clock.now += 15

    assert full == TooOften(15, first=True)
    assert [answer is None for answer in asked(pace, 3)] == [True, True, False]


def test_each_credential_and_each_operation_has_its_own_share(pace: Pace) -> None:
    asked(pace, 5)

    assert asked(pace, 1, credential="other") == [None]
    assert asked(pace, 1, operation="claim") == [None]


def test_memory_is_bounded_and_who_asks_too_often_is_not_forgotten(pace: Pace) -> None:
    asked(pace, 4)

    for number in range(10):
        asked(pace, 1, credential=f"stranger {number}")
        greedy = pace.ask("beat", "key", 4)

    assert len(pace) == 3
    assert greedy is not None


def test_who_was_silent_for_a_minute_is_forgotten(pace: Pace, clock: Clock) -> None:
    asked(pace, 1, credential="one")
    asked(pace, 1, credential="two")

    clock.now += WINDOW_SECONDS
    asked(pace, 1, credential="three")

    assert len(pace) == 1


@pytest.mark.rule("U000-17")
def test_a_limit_is_declared_where_there_is_a_credential_to_count_by() -> None:
    limits = {operation.name: operation.per_minute for operation in OPERATIONS if operation.per_minute is not None}

    assert limits["heartbeat.send"] == HEARTBEATS
    assert not [operation.name for operation in OPERATIONS if operation.public and operation.name in limits]


@pytest.fixture
async def app(fleet: Fleet, clock: Clock) -> AsyncIterator[FastAPI]:
    """The server, with a clock of the test's own."""
    backend = Backend(fleet.working)
    app = build_app(backend)
    app.state.pace = Pace(clock)
    yield app
    await backend.close()


def key_of(fleet: Fleet, name: str) -> Secret:
    key = Secret.mint(fleet.team_id(), fleet.agent_id(name))
    fleet.execute("update agents set api_key_hash = %s where name = %s", key.hash, name)
    return key


@asynccontextmanager
async def calling(app: FastAPI, word: str, host: str = "192.0.2.1") -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(host, 40000))
    headers = {"Authorization": f"Bearer {word}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers) as client:
        yield client


async def beats(client: httpx.AsyncClient, times: int) -> list[int]:
    return [(await client.post("/v1/heartbeat", json={})).status_code for _ in range(times)]


LIMITED = """
    select actor_type, actor_agent_id, resource_type, resource_id, decision, metadata
      from audit_log
     where action = 'auth.rate_limited'
"""


@pytest.mark.rule("U000-17", "U004-16")
async def test_the_sixty_first_heartbeat_of_a_minute_is_refused(app: FastAPI, fleet: Fleet, clock: Clock) -> None:
    async with (
        calling(app, key_of(fleet, "atlas").word) as atlas,
        calling(app, key_of(fleet, "beacon").word) as beacon,
    ):
        heard = await beats(atlas, HEARTBEATS)
        refused = await atlas.post("/v1/heartbeat", json={})
        neighbour = await beats(beacon, 1)
        otherwise = (await atlas.get("/v1/me")).status_code
        clock.now += WINDOW_SECONDS
        later = await beats(atlas, 1)

    assert (heard, neighbour, otherwise, later) == ([200] * HEARTBEATS, [200], 200, [200])
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "60"
    assert refused.json() == {
        "code": "rate_limited",
        "message": "heartbeat.send was asked for more than 60 times within a minute.",
        "hint": "Wait 60 s, then ask less often.",
        "details": {"retry_after": 60, "per_minute": 60},
    }


@pytest.mark.rule("U004-16", "U000-17")
async def test_a_refusal_is_audited_once_a_window(app: FastAPI, fleet: Fleet, clock: Clock) -> None:
    atlas = fleet.agent_id("atlas")
    row = ("agent", atlas, "agent", str(atlas), "block", {"operation": "heartbeat.send", "per_minute": 60})

    async with calling(app, key_of(fleet, "atlas").word) as client:
        await beats(client, HEARTBEATS + 5)
        first_window = fleet.execute(LIMITED)
        clock.now += WINDOW_SECONDS
        await beats(client, HEARTBEATS + 5)

    assert first_window == [row]
    assert fleet.execute(LIMITED) == [row, row]


async def test_what_is_not_acceptable_counts_too(app: FastAPI, fleet: Fleet) -> None:
    wrong = {"mood": "fine"}

    async with calling(app, key_of(fleet, "atlas").word) as client:
        codes = [(await client.post("/v1/heartbeat", json=wrong)).status_code for _ in range(HEARTBEATS)]
        refused = await beats(client, 1)

    assert (codes, refused) == ([422] * HEARTBEATS, [429])


async def test_a_forged_key_uses_up_nobodys_share_and_leaves_no_trace(app: FastAPI, fleet: Fleet) -> None:
    genuine = key_of(fleet, "atlas")
    forged = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))

    codes = []
    for network in range(HEARTBEATS // 15 + 1):
        async with calling(app, forged.word, f"198.51.100.{network}") as attacker:
            codes += await beats(attacker, 15)
    async with calling(app, genuine.word) as atlas:
        mine = await beats(atlas, 1)

    assert set(codes[: HEARTBEATS + 1]) == {401}
    assert set(codes[HEARTBEATS + 1 :]) == {429}
    assert mine == [200]
    assert fleet.execute(LIMITED) == []


async def test_the_refusal_holds_while_the_database_is_away(
    caplog: pytest.LogCaptureFixture, fleet: Fleet
) -> None:
    backend = Backend("host=/nowhere dbname=x")
    app = build_app(backend)
    key = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))
    for _ in range(HEARTBEATS):
        app.state.pace.ask(HEARTBEAT_SEND.name, key.hash, HEARTBEATS)

    with caplog.at_level(logging.WARNING, "agent_console.server"):
        async with calling(app, key.word) as client:
            refused = await client.post("/v1/heartbeat", json={})
    await backend.close()

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert "could not be written to the audit trail" in caplog.text


@pytest.mark.rule("U000-17")
async def test_an_agent_hears_of_it_through_the_port(fleet: Fleet) -> None:
    word = key_of(fleet, "atlas").word
    async with serving(fleet.working) as url, HttpRepository(url, word) as atlas:
        for _ in range(HEARTBEATS):
            await atlas.call(HEARTBEAT_SEND, Heartbeat())
        with pytest.raises(RateLimited) as refused:
            await atlas.call(HEARTBEAT_SEND, Heartbeat())

    assert refused.value.details["per_minute"] == HEARTBEATS

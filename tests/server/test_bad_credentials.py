"""Who keeps sending bad credentials is warned about, then shut out, and it is written down once."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.errors import RateLimited
from agent_console.domain.ids import SUFFIX_LENGTH, AgentId, RegistrationTokenId, TeamId
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.bad_credentials import (
    BLOCK_AT,
    BLOCK_SECONDS,
    TOLD_EVERY_SECONDS,
    WARN_AT,
    WINDOW_SECONDS,
    BadCredentials,
    counted_address,
)
from tests.domain.test_secrets import forged
from tests.server.clock import Clock
from tests.server.stage import bearer, served, until
from tests.support.fleet import Fleet


@pytest.fixture
def counting(clock: Clock) -> BadCredentials:
    return BadCredentials(clock, most_addresses=3)


def is_blocked(counting: BadCredentials, address: str) -> bool:
    try:
        counting.refuse_blocked(address)
    except RateLimited:
        return True
    return False


@pytest.mark.rule("U000-47")
def test_twenty_failures_block_for_five_minutes(counting: BadCredentials, clock: Clock) -> None:
    blocks = [counting.failed("192.0.2.1", None) for _ in range(BLOCK_AT)]

    assert [block is not None for block in blocks] == [False] * (BLOCK_AT - 1) + [True]
    with pytest.raises(RateLimited) as refused:
        counting.refuse_blocked("192.0.2.1")
    assert refused.value.details["retry_after"] == BLOCK_SECONDS
    clock.now += BLOCK_SECONDS - 0.5
    with pytest.raises(RateLimited) as refused:
        counting.refuse_blocked("192.0.2.1")
    assert refused.value.details["retry_after"] == 1
    clock.now += 0.5
    assert not is_blocked(counting, "192.0.2.1")
    assert len(counting) == 0


@pytest.mark.rule("U000-47")
def test_five_failures_are_one_warning(counting: BadCredentials, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agent_console.server"):
        for _ in range(WARN_AT - 1):
            counting.failed("192.0.2.1", None)
        before = len(caplog.records)
        for _ in range(WARN_AT):
            counting.failed("192.0.2.1", None)

    assert before == 0
    assert [record.getMessage() for record in caplog.records] == ["5 bad credentials within 300 s from 192.0.2.1"]


def test_old_failures_are_forgotten(counting: BadCredentials, clock: Clock) -> None:
    for _ in range(BLOCK_AT - 1):
        counting.failed("192.0.2.1", None)

    clock.now += WINDOW_SECONDS
    counting.failed("192.0.2.1", None)

    assert not is_blocked(counting, "192.0.2.1")


def test_failures_on_their_way_do_not_begin_a_second_block(counting: BadCredentials, clock: Clock) -> None:
    for _ in range(BLOCK_AT):
        counting.failed("192.0.2.1", None)

    clock.now += BLOCK_SECONDS - 1
    late = [counting.failed("192.0.2.1", None) for _ in range(BLOCK_AT)]

    assert late == [None] * BLOCK_AT
    clock.now += 1
    assert not is_blocked(counting, "192.0.2.1")


def test_the_team_is_the_one_of_the_last_well_formed_secret(counting: BadCredentials) -> None:
    team_id = TeamId.new()
    counting.failed("192.0.2.1", TeamId.new())
    counting.failed("192.0.2.1", team_id)

    blocks = [counting.failed("192.0.2.1", None) for _ in range(BLOCK_AT - 2)]

    assert blocks[-1] is not None
    assert blocks[-1].team_id == team_id


def test_memory_is_bounded_and_the_longest_silent_is_forgotten(counting: BadCredentials) -> None:
    for _ in range(BLOCK_AT):
        counting.failed("192.0.2.1", None)

    for number in range(2, 5):
        counting.failed(f"192.0.2.{number}", None)

    assert len(counting) == 3
    assert not is_blocked(counting, "192.0.2.1")


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        (None, "unknown"),
    ],
)
def test_an_address_is_counted_by_what_one_customer_has(host: str | None, counted: str) -> None:
    assert counted_address(host) == counted


@pytest.fixture
async def app(fleet: Fleet, clock: Clock) -> AsyncIterator[FastAPI]:
    """The server, with a clock of the test's own."""
    backend = Backend(fleet.working)
    app = build_app(backend)
    app.state.bad_credentials = BadCredentials(clock)
    yield app
    await backend.close()


def calling(app: FastAPI, host: str, word: str, **headers: str) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """A client whose socket has this address."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(app, client=(host, 40000))
        sent = {"Authorization": f"Bearer {word}", **headers}
        async with httpx.AsyncClient(transport=transport, base_url="http://server", headers=sent) as client:
            yield client

    return opened()


async def fail(client: httpx.AsyncClient, times: int) -> list[int]:
    return [(await client.get("/v1/me")).status_code for _ in range(times)]


BLOCKS = """
    select actor_type, actor_label, resource_type, resource_id, decision
      from audit_log
     where action = 'auth.blocked'
"""


@pytest.mark.rule("U000-47", "U004-16")
async def test_a_blocked_address_is_refused_whatever_it_brings(app: FastAPI, fleet: Fleet, clock: Clock) -> None:
    bad, good = Secret.mint(fleet.team_id(), AgentId.new()).word, fleet.token("ana@example.com")

    async with calling(app, "192.0.2.1", bad) as client, calling(app, "192.0.2.1", good) as genuine:
        assert await fail(client, BLOCK_AT - 1) == [401] * (BLOCK_AT - 1)
        between = (await genuine.get("/v1/me")).status_code
        last = await fail(client, 1)
        refused = await genuine.get("/v1/me")
        registering = await genuine.post("/v1/agents/register", json={})
        async with calling(app, "192.0.2.2", good) as neighbour:
            elsewhere = (await neighbour.get("/v1/me")).status_code
        clock.now += BLOCK_SECONDS
        later = (await genuine.get("/v1/me")).status_code

    assert (between, last, elsewhere, later) == (200, [401], 200, 200)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert refused.json()["details"] == {"retry_after": int(BLOCK_SECONDS)}
    assert registering.status_code == 429
    assert fleet.execute(BLOCKS) == [("system", "agent-console", "address", "192.0.2.1", "block")]


@pytest.mark.rule("U002-5")
async def test_the_first_failure_of_a_minute_is_written_down(app: FastAPI, fleet: Fleet, clock: Clock) -> None:
    word = Secret.mint(fleet.team_id(), AgentId.new()).word
    failures = "select resource_id, decision, actor_type from audit_log where action = 'auth.login.failed'"

    async with calling(app, "192.0.2.1", word) as client, calling(app, "192.0.2.2", word) as other:
        await fail(client, 3)
        await fail(other, 1)
        in_one_minute = fleet.execute(f"{failures} order by seq")
        clock.now += TOLD_EVERY_SECONDS
        await fail(client, 2)

    assert in_one_minute == [("192.0.2.1", "block", "system"), ("192.0.2.2", "block", "system")]
    assert len(fleet.execute(failures)) == 3
    assert fleet.one("select count(*) from audit_log a where a::text like %s", f"%{word}%") == 0


@pytest.mark.rule("U004-16")
async def test_a_blocked_client_is_told_when_to_come_back(app: FastAPI) -> None:
    async with calling(app, "192.0.2.1", "nonsense") as client:
        await fail(client, BLOCK_AT)
        refused = await client.get("/v1/me")

    assert refused.headers["Retry-After"] == str(int(BLOCK_SECONDS))


@pytest.mark.parametrize("place", [len("agt_key_"), len("agt_key_") + SUFFIX_LENGTH], ids=["team", "owner"])
async def test_a_forged_key_is_counted_and_logged_like_any_other(fleet: Fleet, place: int) -> None:
    backend, lines = Backend(fleet.working), list[str]()
    word = forged(Secret.mint(fleet.team_id(), fleet.agent_id("atlas")).word, place, "z")

    async with served(build_app(backend, access_log=lines.append)) as url:
        async with httpx.AsyncClient(base_url=url, headers=bearer(word)) as client:
            codes = await fail(client, BLOCK_AT + 1)
            taking = (await client.post("/v1/claims", json={})).status_code
        await until(lambda: len(lines) == BLOCK_AT + 2)
    await backend.close()

    assert (codes, taking) == ([401] * BLOCK_AT + [429], 429)
    assert {json.loads(line)["credential"] for line in lines} == {"not a key"}


async def test_the_address_is_the_sockets_and_not_a_headers(app: FastAPI, fleet: Fleet) -> None:
    word = Secret.mint(fleet.team_id(), AgentId.new()).word

    for number in range(BLOCK_AT):
        claimed = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=198.51.100.{number}"}
        async with calling(app, "2001:db8::1", word, **claimed) as client:
            await fail(client, 1)

    async with calling(app, "2001:db8::2", word) as same_network:
        assert await fail(same_network, 1) == [429]
    assert fleet.execute(BLOCKS)[0][3] == "2001:db8::/64"


async def test_bad_registration_tokens_count_and_name_their_team(app: FastAPI, fleet: Fleet) -> None:
    body = {"name": "x", "nonce": "0123456789abcdef", "token": ""}

    async with calling(app, "192.0.2.1", "") as client:
        for _ in range(BLOCK_AT):
            token = Secret.mint(fleet.team_id(), RegistrationTokenId.new()).word
            assert (await client.post("/v1/agents/register", json=body | {"token": token})).status_code == 401
        refused = await client.post("/v1/agents/register", json=body | {"token": token})

    assert refused.status_code == 429
    assert len(fleet.execute(BLOCKS)) == 1
    assert fleet.one("select team_id from audit_log where action = 'auth.blocked'") == fleet.team_id()


@pytest.mark.parametrize("team_id", [None, TeamId.new()], ids=["mistyped", "no such team"])
async def test_a_block_that_concerns_no_team_is_not_written_down(
    app: FastAPI, fleet: Fleet, team_id: TeamId | None
) -> None:
    word = "nonsense" if team_id is None else Secret.mint(team_id, AgentId.new()).word

    async with calling(app, "192.0.2.1", word) as client:
        codes = await fail(client, BLOCK_AT + 1)

    assert codes == [401] * BLOCK_AT + [429]
    assert fleet.execute(BLOCKS) == []


async def test_no_credential_and_too_small_a_right_are_no_bad_credentials(app: FastAPI, fleet: Fleet) -> None:
    transport = httpx.ASGITransport(app, client=("192.0.2.1", 40000))
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://server") as stranger,
        calling(app, "192.0.2.1", fleet.token("vera@example.com")) as viewer,
    ):
        without = await fail(stranger, BLOCK_AT + 1)
        forbidden = [(await viewer.get("/v1/worker-tokens")).status_code for _ in range(BLOCK_AT + 1)]

    assert without == [401] * (BLOCK_AT + 1)
    assert forbidden == [403] * (BLOCK_AT + 1)

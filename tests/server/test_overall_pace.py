"""How often anybody may ask for anything: a bucket for each credential and for each address."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.ids import AgentId
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import Allowed
from agent_console.server.app import build_app
from agent_console.server.overall_pace import Buckets
from tests.server.clock import Clock
from tests.server.stage import calling
from tests.support.fleet import Fleet

LIMITED = "select actor_type, decision, metadata from audit_log where action = 'auth.rate_limited' order by seq"


def test_a_bucket_holds_a_minute_and_fills_as_time_passes(clock: Clock) -> None:
    buckets = Buckets(clock)

    at_once = [buckets.take("ana", 6) for _ in range(6)]
    empty = buckets.take("ana", 6)
    clock.now += 9.5
    nearly = buckets.take("ana", 6)
    clock.now += 0.5
    full_again = buckets.take("ana", 6)

    assert at_once == [None] * 6
    assert empty is not None and (empty.retry_after, empty.first) == (10, True)
    assert nearly is not None and (nearly.retry_after, nearly.first) == (1, False)
    assert full_again is None


def test_a_bucket_never_holds_more_than_a_minute(clock: Clock) -> None:
    buckets = Buckets(clock)
    buckets.take("ana", 3)

    clock.now += 3600
    taken = [buckets.take("ana", 3) is None for _ in range(4)]

    assert taken == [True, True, True, False]


def test_the_first_refusal_of_a_minute_is_news(clock: Clock) -> None:
    buckets = Buckets(clock)
    buckets.take("ana", 1)

    first, second = buckets.take("ana", 1), buckets.take("ana", 1)
    clock.now += 60
    buckets.take("ana", 1)
    later = buckets.take("ana", 1)

    assert [refusal is not None and refusal.first for refusal in (first, second, later)] == [True, False, True]


def test_the_number_of_buckets_is_bounded(clock: Clock) -> None:
    buckets = Buckets(clock, most_remembered=2)

    for who in ("ana", "ben", "ana", "cleo"):
        buckets.take(who, 2)

    assert len(buckets) == 2
    assert [buckets.take("ana", 2) is None, buckets.take("ben", 2) is None] == [False, True]


@pytest.fixture
async def app(fleet: Fleet, clock: Clock) -> AsyncIterator[FastAPI]:
    """Three requests a minute for each credential, five for each address, and a clock of the test's own."""
    backend = Backend(fleet.working)
    app = build_app(backend, allowed=Allowed(3, 5), trusted_proxies=["127.0.0.1"])
    app.state.credential_buckets = Buckets(clock)
    app.state.address_buckets = Buckets(clock)
    yield app
    await backend.close()


async def codes(client: httpx.AsyncClient, times: int, path: str = "/v1/me") -> list[int]:
    return [(await client.get(path)).status_code for _ in range(times)]


@pytest.mark.rule("U002-15", "U004-16")
async def test_a_credential_that_asks_too_often_is_told_when_to_come_back(
    app: FastAPI, fleet: Fleet, clock: Clock
) -> None:
    word, other = fleet.token("ana@example.com"), fleet.token("vera@example.com")
    async with calling(app, word) as ana, calling(app, f" {word} ") as spaced, calling(app, other) as vera:
        heard = await codes(ana, 3)
        refused = await ana.get("/v1/me")
        in_other_words = await codes(spaced, 1)
        neighbour = await codes(vera, 1)
        clock.now += 20
        later = await codes(ana, 2)

    assert (heard, in_other_words, neighbour, later) == ([200] * 3, [429], [200], [200, 429])
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "20")
    assert refused.json() == {
        "code": "rate_limited",
        "message": "This credential asked more than 3 times within a minute.",
        "hint": "Wait 20 s, then ask less often.",
        "details": {"retry_after": 20, "per_minute": 3},
    }


@pytest.mark.rule("U002-15", "U004-16")
async def test_the_first_refusal_of_a_minute_is_audited(app: FastAPI, fleet: Fleet, clock: Clock) -> None:
    async with calling(app, fleet.token("ana@example.com")) as ana:
        await codes(ana, 6)
        in_one_minute = fleet.execute(LIMITED)
        clock.now += 60
        await codes(ana, 4)

    row = ("human", "block", {"operation": "anything", "per_minute": 3})
    assert in_one_minute == [row]
    assert fleet.execute(LIMITED) == [row, row]


async def test_an_unproved_credential_leaves_no_trace(app: FastAPI, fleet: Fleet) -> None:
    forged = Secret.mint(fleet.team_id(), AgentId.new()).word

    async with calling(app, forged) as stranger, calling(app, "nonsense") as mistaken:
        answered = await codes(stranger, 4), await codes(mistaken, 4)

    assert answered == ([401, 401, 401, 429], [401, 401, 401, 429])
    assert fleet.execute(LIMITED) == []


@pytest.mark.rule("U002-15")
async def test_an_address_has_a_limit_whatever_it_brings(app: FastAPI, fleet: Fleet) -> None:
    async with (
        calling(app, host="2001:db8::1") as stranger,
        calling(app, fleet.token("ana@example.com"), host="2001:db8::2") as same_network,
        calling(app, fleet.token("vera@example.com"), host="2001:db8:0:1::1") as elsewhere,
    ):
        heard = await codes(stranger, 5, "/healthz")
        refused = await same_network.get("/v1/me")
        other = await codes(elsewhere, 1)

    assert (heard, other) == ([200] * 5, [200])
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "12")
    assert refused.json()["message"] == "This address asked more than 5 times within a minute."


async def test_this_machine_is_not_counted_by_address_but_who_comes_through_its_proxy_is(app: FastAPI) -> None:
    async with calling(app) as local:
        here = await codes(local, 8, "/healthz")
        through = [
            (await local.get("/healthz", headers={"X-Forwarded-For": "198.51.100.1"})).status_code
            for _ in range(6)
        ]

    assert here == [200] * 8
    assert through == [200] * 5 + [429]


async def test_zero_is_no_limit(fleet: Fleet) -> None:
    backend = Backend(fleet.working)
    app = build_app(backend, allowed=Allowed(0, 0))
    async with calling(app, "nonsense", host="192.0.2.1") as client:
        heard = await codes(client, 10, "/healthz")
    await backend.close()

    assert heard == [200] * 10


def test_the_usual_limits_are_generous() -> None:
    usual = Allowed()

    assert (usual.requests_per_minute, usual.address_requests_per_minute) == (6_000, 12_000)

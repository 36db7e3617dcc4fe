"""How many streams and long polls one caller may have open at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.errors import RateLimited
from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import Allowed
from agent_console.server.app import build_app
from agent_console.server.arrival import Arrival
from agent_console.server.open_at_once import OpenAtOnce
from tests.server.stage import bearer, calling, key_of, served, until
from tests.support.fleet import Fleet


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    """Two streams and two waiting requests for each credential."""
    backend = Backend(fleet.working)
    yield build_app(backend, allowed=Allowed(streams=2, waiting=2))
    await backend.close()


def open_now(app: FastAPI) -> int:
    counting: OpenAtOnce = app.state.open_at_once
    return len(counting)


@pytest.mark.rule("U002-15")
async def test_one_stream_too_many_is_refused_until_another_ends(app: FastAPI, fleet: Fleet) -> None:
    ana, vera = bearer(fleet.token("ana@example.com")), bearer(fleet.token("vera@example.com"))
    async with (
        served(app) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
        AsyncExitStack() as stack,
    ):
        first = await stack.enter_async_context(client.stream("GET", "/v1/changes", headers=ana))
        await stack.enter_async_context(client.stream("GET", "/v1/stream?log=audit", headers=ana))
        refused = await client.get("/v1/changes", headers=ana)
        other = await stack.enter_async_context(client.stream("GET", "/v1/changes", headers=vera))
        await first.aclose()

        async with asyncio.timeout(60):
            while True:
                again = await stack.enter_async_context(client.stream("GET", "/v1/changes", headers=ana))
                if again.status_code == 200:
                    break

    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
    assert refused.json()["message"] == "There are 2 open streams already, which is all there may be."
    assert other.status_code == 200
    assert open_now(app) == 0


def test_an_address_has_a_limit_of_its_own_but_this_machine_has_none() -> None:
    counting = OpenAtOnce(Allowed(streams=5, address_streams=1))
    here, there = Arrival("1", "127.0.0.1", "ana"), Arrival("2", "192.0.2.1", "ana")

    with counting.stream(here), counting.stream(here), counting.stream(there):
        with pytest.raises(RateLimited), counting.stream(Arrival("3", "192.0.2.1", "ben")):
            pass
        still = len(counting)

    assert still == 2
    assert len(counting) == 0


@pytest.mark.rule("U002-15")
async def test_one_waiting_request_too_many_is_refused(app: FastAPI, fleet: Fleet) -> None:
    wait = {"wait_seconds": 30}
    async with calling(app, key_of(fleet, "atlas")) as atlas, calling(app, key_of(fleet, "beacon")) as beacon:
        waiting = [asyncio.create_task(atlas.post("/v1/claims", json=wait)) for _ in range(2)]
        await until(lambda: open_now(app) == 1)
        async with asyncio.timeout(60):
            while (refused := await atlas.post("/v1/claims", json={"wait_seconds": 0.01})).status_code != 429:
                assert refused.status_code == 200
        at_once = await atlas.post("/v1/claims", json={})
        neighbour = await beacon.post("/v1/claims", json={"wait_seconds": 0.01})
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)

    assert refused.json()["details"] == {"retry_after": 5, "at_once": 2}
    assert (at_once.status_code, neighbour.status_code) == (200, 200)
    assert open_now(app) == 0

"""Every answer carries the request's id, whatever became of the request."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import BODY_BYTES
from agent_console.server.app import build_app
from tests.server.stage import calling, served
from tests.support.fleet import Fleet

MADE_HERE = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    backend = Backend(fleet.working)
    yield build_app(backend)
    await backend.close()


@pytest.mark.parametrize("sent", ["a", "7f3a.B-c_9", "x" * 64])
async def test_a_sane_id_is_kept(app: FastAPI, sent: str) -> None:
    async with calling(app) as client:
        answer = await client.get("/healthz", headers={"X-Request-Id": sent})

    assert answer.headers["X-Request-Id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a\tb", 'a"b', "é", "a/b", "<script>"])
async def test_any_other_is_replaced(app: FastAPI, sent: str) -> None:
    async with calling(app) as client:
        answer = await client.get("/healthz", headers=[(b"X-Request-Id", sent.encode("latin-1"))])

    assert MADE_HERE.fullmatch(answer.headers["X-Request-Id"])


async def test_no_two_requests_have_one_id(app: FastAPI) -> None:
    async with calling(app) as client:
        ids = {(await client.get("/healthz")).headers["X-Request-Id"] for _ in range(20)}

    assert len(ids) == 20


async def test_refusals_carry_it_too(app: FastAPI, fleet: Fleet) -> None:
    async with calling(app, fleet.token("ana@example.com")) as ana, calling(app) as stranger:
        answers = [
            await stranger.get("/v1/me"),
            await ana.get("/v1/nothing"),
            await ana.post("/v1/jobs", content=b"{", headers={"Content-Type": "application/json"}),
            await ana.post("/v1/jobs", content=b" " * (BODY_BYTES + 1)),
        ]

    assert [answer.status_code for answer in answers] == [401, 404, 400, 413]
    assert all(MADE_HERE.fullmatch(answer.headers["X-Request-Id"]) for answer in answers)


async def test_what_broke_is_named_to_the_client_and_told_to_the_log(
    app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise ZeroDivisionError("a secret of the house")

    app.add_api_route("/v1/broken", broken)

    async with calling(app) as client:
        answer = await client.get("/v1/broken?token=hunter2", headers={"X-Request-Id": "find-me"})

    assert (answer.status_code, answer.headers["X-Request-Id"]) == (500, "find-me")
    assert answer.json()["details"] == {"request_id": "find-me"}
    assert "secret of the house" not in answer.text
    assert "request find-me failed: GET /v1/broken" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_stream_carries_it(app: FastAPI, fleet: Fleet) -> None:
    headers = {"Authorization": f"Bearer {fleet.token('ana@example.com')}", "X-Request-Id": "my-stream"}
    async with (
        served(app) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
        asyncio.timeout(60),
        client.stream("GET", "/v1/changes") as answer,
    ):
        assert answer.headers["X-Request-Id"] == "my-stream"
        assert answer.headers.get_list("Cache-Control") == ["no-store"]

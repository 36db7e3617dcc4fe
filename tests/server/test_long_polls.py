"""Whoever waits and goes away waits no longer, and takes nothing; whoever waits too long is told."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from agent_console.domain.errors import TimedOut
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.attended import within
from tests.server.stage import bearer, calling, key_of, raw_request, served, until, wire
from tests.support.fleet import Fleet

JSON = {"Content-Type": "application/json"}
# Less than the client asked to wait, so that only its leaving can have ended the wait.
AT_ONCE_SECONDS = 20


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
async def app(fleet: Fleet, lines: list[str]) -> AsyncIterator[FastAPI]:
    backend = Backend(fleet.working)
    yield build_app(backend, access_log=lines.append)
    await backend.close()


async def leave_while_waiting(app: FastAPI, url: str, request: bytes) -> None:
    """Ask, go away while the server waits for us, and see it stop."""
    async with wire(url) as (_, writer):
        writer.write(request)
        await until(lambda: len(app.state.open_at_once) == 1)
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await until(lambda: len(app.state.open_at_once) == 0)


async def test_a_job_that_comes_after_its_client_left_is_anothers(
    app: FastAPI, fleet: Fleet, lines: list[str]
) -> None:
    wanted = {"allowed_types": ["late"], "wait_seconds": 30}
    claim = raw_request("POST", "/v1/claims", bearer(key_of(fleet, "atlas")) | JSON, json.dumps(wanted).encode())
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await leave_while_waiting(app, url, claim)
        made = await client.post(
            "/v1/jobs", json={"type": "late", "payload": {}}, headers=bearer(fleet.token("ana@example.com"))
        )
        beacon = bearer(key_of(fleet, "beacon"))
        claimed = await client.post("/v1/claims", json=wanted, headers=beacon)

    assert [job["id"] for job in claimed.json()["jobs"]] == [made.json()["id"]]
    assert '"status": 499' in lines[0]


async def test_a_reader_of_the_trail_that_left_is_not_waited_for(app: FastAPI, fleet: Fleet) -> None:
    path = f"/v1/audit/tail?after_position={2**62}&wait_seconds=25"
    tail = raw_request("GET", path, bearer(fleet.token("ana@example.com")))

    async with served(app) as url:
        await leave_while_waiting(app, url, tail)

    assert len(app.state.open_at_once) == 0


async def test_an_answer_that_does_not_come_is_a_504(
    app: FastAPI, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.server.routes.ANSWER_SECONDS", 0.3)
    async with calling(app, fleet.token("ana@example.com")) as ana:
        with psycopg.connect(fleet.administration) as blocking:
            blocking.execute("lock table jobs in access exclusive mode")
            refused = await ana.get("/v1/jobs")

    assert (refused.status_code, refused.json()["code"]) == (504, "timed_out")
    assert refused.json()["message"] == "There was no answer within 0.3 s."


async def test_a_timeout_of_another_is_not_taken_for_ours() -> None:
    with pytest.raises(TimeoutError, match="another"):
        async with within(60):
            raise TimeoutError("another")
    with pytest.raises(TimedOut):
        async with within(0.01):
            await asyncio.Event().wait()

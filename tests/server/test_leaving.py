"""A server that stops lets nobody hang: who waits is answered, streams end, and no job is taken in vain."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

import httpx
import pytest
from fastapi import FastAPI

from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.listening import LAST_ANSWERS_SECONDS
from tests.cli.program import environment, started
from tests.server.stage import bearer, key_of, raw_request, served, until, wire
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

ANA = "ana@example.com"
JSON = {"Content-Type": "application/json"}
CLAIM = {"allowed_types": ["late"], "wait_seconds": 30}


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    backend = Backend(fleet.working)
    yield build_app(backend)
    await backend.close()


async def test_who_waits_is_answered_when_the_server_stops(app: FastAPI, fleet: Fleet) -> None:
    """A claim with what it found, a reader with a refusal that says to ask again, a stream with its end."""
    ana, atlas = bearer(fleet.token(ANA)), bearer(key_of(fleet, "atlas"))
    tail = f"/v1/audit/tail?after_position={2**62}&wait_seconds=25"
    async with httpx.AsyncClient(timeout=60) as client, AsyncExitStack() as open_streams:
        async with served(app) as url:
            changes = await open_streams.enter_async_context(
                client.stream("GET", f"{url}/v1/changes", headers=ana)
            )
            claiming = asyncio.create_task(client.post(f"{url}/v1/claims", json=CLAIM, headers=atlas))
            tailing = asyncio.create_task(client.get(f"{url}{tail}", headers=ana))
            await until(lambda: len(app.state.open_at_once) == 3)
            begun = monotonic()
        stopped = monotonic() - begun
        claimed, tailed, told = await claiming, await tailing, await changes.aread()

    assert (claimed.status_code, claimed.json()["jobs"]) == (200, [])
    assert (tailed.status_code, tailed.json()["message"]) == (503, "The server is stopping.")
    assert told.endswith(b"\n\n")
    assert stopped < LAST_ANSWERS_SECONDS


async def test_no_job_is_taken_that_no_agent_hears_of(app: FastAPI, fleet: Fleet) -> None:
    """Jobs come for agents that wait in the very moment in which the server stops."""
    agents = {name: bearer(key_of(fleet, name)) for name in ("atlas", "beacon")}
    fleet.execute("update agents set max_concurrent_jobs = 50, revoked_at = null, drained_at = null")
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        async with served(app) as url:
            claiming = [
                asyncio.create_task(client.post(f"{url}/v1/claims", json=CLAIM, headers=headers))
                for headers in agents.values()
                for _ in range(10)
            ]
            await until(lambda: len(app.state.open_at_once) == len(agents))
            ana = bearer(fleet.token(ANA))
            made = [
                asyncio.create_task(
                    client.post(f"{url}/v1/jobs", json={"type": "late", "payload": {}}, headers=ana)
                )
                for _ in range(20)
            ]
            await made[0]
        answers = await asyncio.gather(*claiming, return_exceptions=True)
        await asyncio.gather(*made, return_exceptions=True)

    told = {job["id"] for answer in answers if isinstance(answer, httpx.Response) for job in answer.json()["jobs"]}
    held = fleet.execute("select id from jobs where type = 'late' and agent_id is not null")
    assert all(isinstance(answer, httpx.Response) for answer in answers)
    assert told
    assert len(told) == len(held)


@pytest.mark.xdist_group(PROGRAMS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_program_stops_without_a_word_about_its_own_code(
    fleet: Fleet, tmp_path: Path, number: signal.Signals
) -> None:
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    claim = raw_request("POST", "/v1/claims", bearer(key_of(fleet, "atlas")) | JSON, json.dumps(CLAIM).encode())
    changes = raw_request("GET", "/v1/changes", bearer(fleet.token(ANA)))

    with started("serve", "--port", "0", variables=variables) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        async with wire(url) as (claimed, claiming), wire(url) as (told, following):
            claiming.write(claim)
            await claiming.drain()
            following.write(changes)
            # It answers the second one: so it has read the first.
            await told.readuntil(b"event: change")
            program.send_signal(number)
            answer, _ = await claimed.read(), await told.read()
        _, said = program.communicate()

    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert "Traceback" not in said
    assert sorted((line["path"], line["status"]) for line in lines) == [("/v1/changes", 200), ("/v1/claims", 200)]

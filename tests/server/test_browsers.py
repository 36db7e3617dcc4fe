"""A page in somebody's browser gets nothing from the server: no cross-origin answer, no cookie, no guessing."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from agent_console.repository.operations import OPERATIONS
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from tests.server.stage import calling
from tests.support.fleet import Fleet

EVIL = "https://evil.example"


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[FastAPI]:
    backend = Backend(fleet.working)
    yield build_app(backend)
    await backend.close()


def opened_to(answer: httpx.Response) -> list[str]:
    """Headers that let another page read the answer, or leave something in the browser."""
    return [name for name in answer.headers if name.startswith("access-control-") or name == "set-cookie"]


async def test_no_answer_opens_itself_to_another_page(app: FastAPI, fleet: Fleet) -> None:
    async with calling(app, fleet.token("ana@example.com"), Origin=EVIL) as page:
        answers = [
            await page.get("/v1/me"),
            await page.get("/v1/nothing"),
            await page.get("/healthz"),
            await page.get("/openapi.json"),
            await page.get("/docs"),
            await page.post("/v1/jobs", json={"type": "x", "payload": {}}),
        ]

    assert [answer.status_code for answer in answers] == [200, 404, 200, 200, 200, 201]
    assert [opened_to(answer) for answer in answers] == [[]] * len(answers)


async def test_no_preflight_is_granted(app: FastAPI) -> None:
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with calling(app, Origin=EVIL, **asking) as page:
        for operation in OPERATIONS:
            path = operation.path.format_map(dict.fromkeys(operation.path_fields, "x"))
            answer = await page.options(path)
            assert (answer.status_code, opened_to(answer)) == (405, []), operation.name


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_what_a_page_may_send_unasked_changes_nothing(app: FastAPI, fleet: Fleet, kind: str) -> None:
    """Such a request may carry cookies, but no Authorization header, and no body that counts as JSON."""
    jobs = fleet.one("select count(*) from jobs")
    cookies = {"Content-Type": kind, "Cookie": f"Authorization=Bearer {fleet.token('ana@example.com')}"}
    body = b'{"type": "x", "payload": {}}'

    async with calling(app, Origin=EVIL) as page, calling(app, fleet.token("ana@example.com")) as ana:
        without = await page.post("/v1/jobs", content=body, headers=cookies)
        public = await page.post("/v1/agents/register", content=body, headers=cookies)
        even_so = await ana.post("/v1/jobs", content=body, headers={"Content-Type": kind})

    assert (without.status_code, public.status_code, even_so.status_code) == (401, 422, 422)
    assert fleet.one("select count(*) from jobs") == jobs


async def test_answers_are_not_kept_and_not_guessed_at(app: FastAPI, fleet: Fleet) -> None:
    async with calling(app, fleet.token("ana@example.com")) as ana:
        answers = [await ana.get(path) for path in ("/v1/me", "/v1/nothing", "/healthz", "/metrics")]

    assert [answer.headers.get_list("Cache-Control") for answer in answers] == [["no-store"]] * 4
    assert [answer.headers["X-Content-Type-Options"] for answer in answers] == ["nosniff"] * 4


async def test_nobody_is_led_to_a_host_that_the_client_made_up(app: FastAPI, fleet: Fleet) -> None:
    async with calling(app, fleet.token("ana@example.com"), Host="evil.example") as client:
        slash, described = await client.get("/v1/jobs/"), await client.get("/openapi.json")

    assert (slash.status_code, "Location" in slash.headers) == (404, False)
    assert "evil.example" not in described.text

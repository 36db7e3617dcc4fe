"""The server as a stranger with curl meets it."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.errors import ConfigError
from agent_console.repository.http.repository import QUIET_SECONDS
from agent_console.repository.operations import OPERATIONS
from agent_console.server.allowed import BODY_BYTES
from agent_console.server.listening import entrance, http_config, is_loopback, listening_socket
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[httpx.AsyncClient]:
    """An administrator's plain HTTP client."""
    headers = {"Authorization": f"Bearer {fleet.token('ana@example.com')}"}
    async with (
        serving(fleet.working) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        yield client


async def test_health_tells_the_process_and_readiness_the_database(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json()["status"] == "alive"
    assert (await client.get("/readyz")).json() == {"status": "ready"}


async def test_readiness_says_why_not() -> None:
    async with serving("host=/nowhere dbname=x") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.get("/readyz")
        alive = await client.get("/healthz")

    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert alive.status_code == 200


@pytest.mark.rule("U003-5", "R004-74")
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/jobs?limit=0", None, 422, "invalid"),
        ("GET", "/v1/jobs?limit=201", None, 422, "invalid"),
        ("GET", "/v1/jobs?status=nonsense", None, 422, "invalid"),
        ("GET", "/v1/jobs?stat=queued", None, 422, "invalid"),
        ("GET", "/v1/jobs?after=xyz", None, 422, "invalid"),
        ("GET", "/v1/agents/con_01h455vb4pex5vsknk084sn02q", None, 400, "wrong_id"),
        ("GET", "/v1/agents/17", None, 400, "wrong_id"),
        ("GET", "/v1/agents/agt_01h455vb4pex5vsknk084sn02q", None, 404, "not_found"),
        ("GET", "/v1/nothing", None, 404, "not_found"),
        ("DELETE", "/v1/jobs", None, 405, "bad_request"),
        ("POST", "/v1/jobs", b"{", 400, "bad_request"),
        ("POST", "/v1/jobs", b"[]", 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x"}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": " ", "payload": {}}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": []}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {}, "extra": 1}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {}, "priority": 1.5}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {}, "priority": 1001}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {"a": NaN}}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {"a": "\\u0000"}}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"type": "x", "payload": {"a": "\\ud800"}}', 422, "invalid"),
        ("POST", "/v1/jobs", b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "bad_request"),
        ("POST", "/v1/jobs", b"\xff\xfe", 400, "bad_request"),
    ],
)
async def test_every_refusal_has_the_same_four_words(
    client: httpx.AsyncClient, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    headers = {"Content-Type": "application/json"} if body is not None else {}

    answer = await client.request(method, path, content=body, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert set(answer.json()) == {"code", "message", "hint", "details"}


@pytest.mark.rule("R000-13", "R003-2")
async def test_a_refused_field_is_named_and_its_value_is_not_repeated(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"type": "x" * 101, "payload": "hunter2"})

    fields = {item["field"] for item in answer.json()["details"]["fields"]}
    assert fields == {"type", "payload"}
    assert "hunter2" not in answer.text
    assert "xxxx" not in answer.text


@pytest.mark.parametrize("credential", [None, "", "Bearer", "Bearer nonsense", "Basic YTpi"])
async def test_without_a_credential_nothing_is_told(fleet: Fleet, credential: str | None) -> None:
    headers = {} if credential is None else {"Authorization": credential}
    async with (
        serving(fleet.working) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        # Every operation without a credential; with a bad one so few that their number does not end the test.
        step = 1 if credential is None else 1 + len(OPERATIONS) // 15
        for operation in [operation for operation in OPERATIONS if not operation.public][::step]:
            path = operation.path.format_map(dict.fromkeys(operation.path_fields, "x"))
            answer = await client.request(operation.verb.value, path)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), operation.name
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert (await client.get("/v1/changes")).status_code == 401


async def test_a_body_that_is_too_large_is_not_read(client: httpx.AsyncClient) -> None:
    announced = await client.post("/v1/jobs", content=b"x" * (BODY_BYTES + 1))

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(BODY_BYTES // 100_000 + 1):
            yield b" " * 100_000

    streamed = await client.post("/v1/jobs", content=unannounced(), headers={"Content-Type": "application/json"})

    assert (announced.status_code, announced.json()["code"]) == (413, "too_large")
    assert (streamed.status_code, streamed.json()["code"]) == (413, "too_large")


async def test_the_description_holds_every_operation(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()

    for operation in OPERATIONS:
        entry = described["paths"][operation.path][operation.verb.value.lower()]
        assert entry["operationId"] == operation.name.replace(".", "_")
        assert entry["summary"] == operation.summary
        assert "default" in entry["responses"]
    assert described["info"]["version"]


@pytest.mark.rule("R000-8")
async def test_no_answer_holds_a_bare_uuid(client: httpx.AsyncClient) -> None:
    import re

    bare = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-")
    for path in ("/v1/me", "/v1/pool", "/v1/queue", "/v1/agents", "/v1/jobs"):
        assert not bare.search((await client.get(path)).text), path


@pytest.mark.rule("U001-8")
async def test_a_silent_stream_shows_that_it_lives(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.server.stream.KEEP_ALIVE_SECONDS", 0.05)
    async with asyncio.timeout(60), client.stream("GET", "/v1/changes") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line == ": still here":
                break


def test_a_taken_port_is_one_sentence() -> None:
    taken = listening_socket("127.0.0.1", 0)
    port = taken.getsockname()[1]

    with pytest.raises(ConfigError) as refused:
        listening_socket("127.0.0.1", port)
    taken.close()

    assert refused.value.message == f"Port {port} on 127.0.0.1 is taken."
    assert "--port" in refused.value.hint


def test_credentials_are_not_served_in_the_clear_beyond_this_machine() -> None:
    assert [host for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9") if not is_loopback(host)] == []
    with pytest.raises(ConfigError) as refused:
        entrance("0.0.0.0", 0, plain_http=False, tls=None)

    assert "--plain-http" in refused.value.hint


def test_a_quiet_connection_is_let_go_by_its_caller_long_before_the_server_closes_it() -> None:
    """A request that crosses the end of its connection is lost, and a change can't just be sent again."""
    assert http_config(FastAPI()).timeout_keep_alive >= 2 * QUIET_SECONDS

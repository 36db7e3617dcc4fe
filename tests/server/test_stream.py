"""Live streams on the wire."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from types import SimpleNamespace

import httpx
import pytest
from starlette.types import Message

from agent_console.domain.ids import JobId, ThreadId
from agent_console.server.event_stream import EventStream, event
from agent_console.server.leaving import Leaving
from tests.support.conversations import OWNER, add_thread, say
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {fleet.token(OWNER)}"}
    async with (
        serving(fleet.working) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        yield client


async def ids_of(client: httpx.AsyncClient, count: int, last_seen: str | None = None, **asked: str) -> list[str]:
    """The ids of the first events."""
    headers = {} if last_seen is None else {"Last-Event-ID": last_seen}
    ids: list[str] = []
    async with asyncio.timeout(60), client.stream("GET", "/v1/stream", params=asked, headers=headers) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            ids += [line.removeprefix("id: ")] if line.startswith("id: ") else []
            if len(ids) == count:
                break
    return ids


@pytest.mark.rule("U001-8")
async def test_the_last_id_that_was_seen_wins_over_the_query(client: httpx.AsyncClient, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    for n in range(3):
        say(fleet, thread_id, content=f"line {n}")
    asked = {"log": "messages", "thread_id": str(thread_id), "after": "0"}

    whole = await ids_of(client, 4, **asked)
    rest = await ids_of(client, 2, whole[2], **asked)

    seqs = [str(seq) for (seq,) in fleet.execute("select seq from messages order by seq")]
    assert (whole, rest) == (["0", *seqs], [seqs[1], seqs[2]])


NOT_TO_BE_HAD: tuple[dict[str, str], ...] = (
    {},
    {"log": "secrets"},
    {"log": "messages"},
    {"log": "messages", "thread_id": "../etc/passwd"},
    {"log": "messages", "thread_id": str(JobId.new())},
    {"log": "audit", "thread_id": str(ThreadId.new())},
    {"log": "job_events", "job_id": str(JobId.new()), "after": "-1"},
    {"log": "audit", "after": str(2**63)},
    {"log": "audit", "last_seen": "1"},
)
NEVER_GIVEN = ("x", "-1", "1.0", "1e3", "9" * 19, "9" * 40, "1;2")


async def test_what_no_stream_has_or_gave_is_refused(client: httpx.AsyncClient) -> None:
    for asked in NOT_TO_BE_HAD:
        answer = await client.get("/v1/stream", params=asked)
        assert (answer.status_code, answer.json()["code"]) in ((422, "invalid"), (400, "wrong_id")), asked
    for last_seen in NEVER_GIVEN:
        answer = await client.get("/v1/stream", params={"log": "audit"}, headers={"Last-Event-ID": last_seen})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), last_seen


async def test_who_takes_nothing_any_more_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_console.server.event_stream.STUCK_SECONDS", 0.01)
    closed = asyncio.Event()

    async def much() -> AsyncGenerator[str, None]:
        try:
            while True:
                yield event("change", "{}")
        finally:
            closed.set()

    events = much()
    stream = EventStream(await anext(events), events, keep_alive=5.0)

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def stuck(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    app = SimpleNamespace(state=SimpleNamespace(leaving=Leaving(lambda: None)))
    async with asyncio.timeout(60):
        await stream({"type": "http", "app": app}, never, stuck)

    assert closed.is_set()

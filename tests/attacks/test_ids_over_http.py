"""Over HTTP an id of another team is answered as the id of nothing, to the byte; a live stream of it too."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from agent_console.domain.ids import Id, JobId, ThreadId
from agent_console.repository.operations import Verb
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from tests.attacks.asked_about import FIELDS
from tests.attacks.request_fields import IdField
from tests.attacks.two_teams import Ids, two_teams
from tests.server.stage import calling
from tests.support.asking import ANA
from tests.support.fleet import Fleet

SOON = 60.0
SAME = {"X-Request-Id": "the-same"}


@pytest.mark.rule("U000-33")
async def test_what_is_read_or_followed_tells_nothing_of_another_team(
    story: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_teams(story, monkeypatch) as teams:
        told_apart = []
        async with opened_app(story.working) as app, calling(app, story.token(ANA)) as ana:
            for address, kind in addresses(teams.ours):
                of_nothing = await answer(ana, address, kind.new())
                of_theirs = await answer(ana, address, teams.theirs[kind.prefix])
                told_apart += [(address, of_nothing, of_theirs)] if of_nothing != of_theirs else []

    assert told_apart == []


def addresses(ours: Ids) -> Iterator[tuple[str, type[Id]]]:
    """Everything that is read, with a gap for the id, and what is followed live."""
    for asked in FIELDS:
        if asked.operation.verb is Verb.GET:
            yield address_of(asked, ours), asked.kind
    yield "/v1/stream?log=messages&thread_id={}", ThreadId
    yield "/v1/stream?log=job_events&job_id={}", JobId


def address_of(asked: IdField, ours: Ids) -> str:
    name, operation = asked.path[0], asked.operation
    kinds = {other.path[0]: other.kind.prefix for other in FIELDS if other.operation is operation}
    in_path = {field: "{}" if field == name else str(ours[kinds[field]]) for field in operation.path_fields}
    return operation.path.format_map(in_path) + ("" if name in in_path else f"?{name}={{}}")


async def answer(client: httpx.AsyncClient, address: str, id_: Id) -> tuple[int, object, str]:
    """Status, headers and body. A stream that were let through would not end by itself."""
    async with asyncio.timeout(SOON):
        answered = await client.get(address.format(id_), headers=SAME)
    return answered.status_code, answered.headers.multi_items(), answered.text.replace(str(id_), "<the id>")


@asynccontextmanager
async def opened_app(dsn: str) -> AsyncIterator[FastAPI]:
    backend = Backend(dsn)
    yield build_app(backend)
    await backend.close()

"""Live streams: notices of what changed, and logs row by row, as server-sent events."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import FastAPI, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from agent_console.domain.errors import ConsoleError, Invalid
from agent_console.domain.records import LARGEST_NUMBER
from agent_console.repository.logs import Followed, LogQuery
from agent_console.repository.port import Change
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server.credentials import CallerRepository
from agent_console.server.event_stream import STILL_HERE, Events, EventStream, event
from agent_console.server.failures import ERROR_RESPONSES

KEEP_ALIVE_SECONDS = 5.0
CHUNK_CHARACTERS = 65_536
RESPONSES = ERROR_RESPONSES | {200: {"content": {"text/event-stream": {}}}}

LastEventId = Annotated[
    str | None, Header(max_length=20, description="The id of the last event that was seen: go on after it.")
]


async def opened(events: Events) -> EventStream:
    """Whoever may not open the stream is refused as everywhere else; later, a refusal is the last event."""
    return EventStream(await anext(events), _until_refused(events), keep_alive=KEEP_ALIVE_SECONDS)


async def _until_refused(events: Events) -> Events:
    try:
        async with aclosing(events):
            async for text in events:
                yield text
    except ConsoleError as error:
        yield event("end", json.dumps(error.body()))


async def change_events(changes: AsyncGenerator[tuple[Change, ...], None]) -> Events:
    async with aclosing(changes):
        async for together in changes:
            told = (event("change", change.model_dump_json()) for change in together)
            yield "".join(told) or STILL_HERE


async def row_events(name: str, rows: AsyncGenerator[tuple[Followed[BaseModel], ...], None]) -> Events:
    """The first event only tells where the log ends: who has seen no row yet can go on from there."""
    async with aclosing(rows):
        async for together in rows:
            text = ""
            for followed in together:
                text += event("begin" if followed.row is None else name, followed.as_json, id=followed.position)
                if len(text) >= CHUNK_CHARACTERS:
                    yield text
                    text = ""
            if text:
                yield text


def position_of(last_event_id: str | None, query: LogQuery) -> int | None:
    """A client that connects again sends the header, with the query it began with."""
    if last_event_id is None or not last_event_id.strip():
        return query.after
    word = last_event_id.strip()
    if not (word.isascii() and word.isdigit()) or int(word) > LARGEST_NUMBER:
        raise Invalid(
            "Last-Event-ID is not an id of this stream.",
            hint="Send the id of the last event that you have seen, or none.",
            details={"field": "Last-Event-ID"},
        )
    return int(word)


def rows_of(repository: PostgresRepository, query: LogQuery, after: int | None) -> Events:
    return row_events(query.log.value, repository.gathered_rows(query.wanted, after))


def add_stream(app: FastAPI) -> None:
    @app.get(
        "/v1/changes",
        name="changes",
        operation_id="changes",
        summary="Live notices of what changed, as server-sent events.",
        tags=["changes"],
        response_class=StreamingResponse,
        responses=RESPONSES,
    )
    async def changes(repository: CallerRepository) -> EventStream:
        return await opened(change_events(repository.gathered_changes()))

    @app.get(
        "/v1/stream",
        name="stream",
        operation_id="stream",
        summary="A log row by row, as server-sent events; goes on after the last one that was seen.",
        tags=["changes"],
        response_class=StreamingResponse,
        responses=RESPONSES,
    )
    async def stream(
        repository: CallerRepository,
        query: Annotated[LogQuery, Query()],
        last_event_id: LastEventId = None,
    ) -> EventStream:
        return await opened(rows_of(repository, query, position_of(last_event_id, query)))

"""What `bench.http` measures our page of messages against: a plain FastAPI route, without credentials and rights.

    python -m bench.plain_page DSN

It reads the same rows with psycopg, builds pydantic models and lets FastAPI answer with them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated
from uuid import UUID

import uvicorn
from fastapi import FastAPI, Query
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, JsonValue

from agent_console.server.listening import address_of, listening_socket

# As many as our server has for such a page.
CONNECTIONS = 6

PAGE = """
    select m.id, m.seq, m.thread_id, m.author_type, m.author_user_id, m.author_agent_id,
           coalesce(a.name, u.full_name, 'agent-console') as author, m.content, m.payload, m.run_id,
           m.to_agent_ids, m.broadcast, m.intervention, m.created_at
      from messages m
      left join users u on u.team_id = m.team_id and u.id = m.author_user_id
      left join agents a on a.team_id = m.team_id and a.id = m.author_agent_id
     where m.team_id = %s and m.thread_id = %s
     order by m.seq desc
     limit %s
"""


class PlainMessage(BaseModel):
    id: UUID
    seq: int
    thread_id: UUID
    author_type: str
    author_user_id: UUID | None
    author_agent_id: UUID | None
    author: str
    content: str
    payload: dict[str, JsonValue]
    run_id: UUID | None
    to_agent_ids: list[str]
    broadcast: bool
    intervention: bool
    created_at: datetime


class PlainPage(BaseModel):
    items: list[PlainMessage]
    next: int | None


def plain_app(dsn: str) -> FastAPI:
    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        dsn,
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        open=False,
        kwargs={"autocommit": True, "row_factory": dict_row},
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/teams/{team_id}/threads/{thread_id}/messages")
    async def messages(
        team_id: UUID, thread_id: UUID, limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> PlainPage:
        async with pool.connection() as connection:
            rows = await (await connection.execute(PAGE, (team_id, thread_id, limit + 1))).fetchall()
        items = [PlainMessage.model_validate(row) for row in rows[:limit]]
        return PlainPage(items=items, next=items[-1].seq if len(rows) > limit else None)

    return app


if __name__ == "__main__":
    listening = listening_socket("127.0.0.1", 0)
    print(address_of(listening), flush=True)
    config = uvicorn.Config(plain_app(sys.argv[1]), log_level="warning", access_log=False)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))

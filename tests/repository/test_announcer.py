"""The announcer: what many writers have to say leaves in few notices."""

import asyncio

import psycopg
from psycopg.rows import TupleRow

from agent_console.domain.ids import JobId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.live.changes import CHANNEL, Announcer
from agent_console.repository.postgres.queue.connections import QueueConnections
from tests.support.fleet import Fleet

THE_END = "the end"


async def heard_before_the_end(listening: psycopg.AsyncConnection[TupleRow], fleet: Fleet) -> list[str]:
    """Notices arrive in the order of their commits: what was said before has come when the last one has."""
    fleet.execute("select pg_notify(%s, %s)", CHANNEL, THE_END)
    heard: list[str] = []
    async for notice in listening.notifies(timeout=60):
        if notice.payload == THE_END:
            return heard
        heard.append(notice.payload)
    raise AssertionError("the last notice did not come")


async def test_a_hundred_changes_leave_in_few_notices(fleet: Fleet) -> None:
    connections = QueueConnections(database := Database(fleet.working))
    announcer = Announcer(connections)
    team_id = TeamId.new()
    async with await psycopg.AsyncConnection.connect(fleet.administration, autocommit=True) as listening:
        await listening.execute(f"listen {CHANNEL}".encode())

        for _ in range(20):
            for _ in range(5):
                announcer.announce(team_id, Topic.JOBS, JobId.new())
            await asyncio.sleep(0)
        await announcer.close()

        heard = await heard_before_the_end(listening, fleet)
    await connections.close()
    await database.close()

    assert 1 <= len(heard) <= 10


async def test_what_was_said_last_is_still_told_when_closing(fleet: Fleet) -> None:
    connections = QueueConnections(database := Database(fleet.working))
    announcer = Announcer(connections)
    async with await psycopg.AsyncConnection.connect(fleet.administration, autocommit=True) as listening:
        await listening.execute(f"listen {CHANNEL}".encode())
        announcer.announce(TeamId.new(), Topic.AGENTS, JobId.new())

        await announcer.close()

        heard = await heard_before_the_end(listening, fleet)
    await connections.close()
    await database.close()

    assert len(heard) == 1

"""The announcer: what many writers have to say leaves in few notices."""

import asyncio

import psycopg

from agent_console.domain.ids import JobId, TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.changes import CHANNEL, Announcer
from agent_console.repository.postgres.database import Database
from tests.support.fleet import Fleet


async def test_a_hundred_changes_leave_in_few_notices(fleet: Fleet) -> None:
    database = Database(fleet.working)
    announcer = Announcer(database)
    team_id = TeamId.new()
    async with await psycopg.AsyncConnection.connect(fleet.administration, autocommit=True) as listening:
        await listening.execute(f"listen {CHANNEL}".encode())

        for _ in range(20):
            for _ in range(5):
                announcer.announce(team_id, Topic.JOBS, JobId.new())
            await asyncio.sleep(0)
        await announcer.close()

        heard = [notice.payload async for notice in listening.notifies(timeout=0.3)]
    await database.close()

    assert 1 <= len(heard) <= 3


async def test_what_was_said_last_is_still_told_when_closing(fleet: Fleet) -> None:
    database = Database(fleet.working)
    announcer = Announcer(database)
    async with await psycopg.AsyncConnection.connect(fleet.administration, autocommit=True) as listening:
        await listening.execute(f"listen {CHANNEL}".encode())
        announcer.announce(TeamId.new(), Topic.AGENTS, JobId.new())

        await announcer.close()

        heard = [notice.payload async for notice in listening.notifies(timeout=0.3)]
    await database.close()

    assert len(heard) == 1

"""What the database's complaints mean to a person, and to the programs that ask again by themselves."""

import asyncio

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import text

from agent_console.agent.line import is_passing
from agent_console.domain.errors import Conflict, DatabaseUnavailable, TimedOut
from agent_console.domain.team_settings import SettingChange
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.repository import open_direct
from agent_console.server.failures import answer
from agent_console.tui.link import GONE
from tests.support.fleet import Fleet

LOCK = text("select 1 from agents where name = :name for update")
COUNT = text("update agents set max_concurrent_jobs = max_concurrent_jobs + 1 where name = 'atlas'")


def is_told_as_a_conflict_that_passes(error: object) -> bool:
    """A console is not lost over it, and an agent says again what it had to say."""
    assert isinstance(error, Conflict)
    assert error.message == "Somebody changed the same at the same time; nothing was changed."
    assert error.hint == "Try again."
    return is_passing(error) and "Retry-After" in answer(error).headers and not isinstance(error, GONE)


async def test_of_two_who_wait_for_each_other_one_may_try_again(fleet: Fleet) -> None:
    database, both = Database(fleet.working), asyncio.Barrier(2)

    async def lock(*names: str) -> None:
        async with database.changing() as connection:
            await connection.execute(LOCK, {"name": names[0]})
            await both.wait()
            await connection.execute(LOCK, {"name": names[1]})

    locking = (database.within_time(lock(*names)) for names in (("atlas", "beacon"), ("beacon", "atlas")))
    told = await asyncio.gather(*locking, return_exceptions=True)
    await database.close()

    (refused,) = [error for error in told if error is not None]
    assert is_told_as_a_conflict_that_passes(refused)


async def test_who_changes_what_was_changed_meanwhile_may_try_again(fleet: Fleet) -> None:
    database = Database(fleet.working)

    async def count() -> None:
        async with database.changing() as connection:
            await connection.execute(text("set transaction isolation level repeatable read"))
            await connection.execute(text("select 1 from agents"))
            async with database.changing() as another:
                await another.execute(COUNT)
            await connection.execute(COUNT)

    with pytest.raises(Conflict) as refused:
        await database.within_time(count())
    await database.close()

    assert is_told_as_a_conflict_that_passes(refused.value)


async def test_a_database_that_takes_no_changes_says_so(fleet: Fleet) -> None:
    options = f"{conninfo_to_dict(fleet.working)['options']} -c default_transaction_read_only=on"
    async with open_direct(make_conninfo(fleet.working, options=options), user="ana@example.com") as ana:
        with pytest.raises(DatabaseUnavailable) as refused:
            await ana.call(SETTINGS_SET, SettingChange(name="max_hops", value=4))

    assert refused.value.message == "This database takes no changes; it may be a standby."
    assert "target_session_attrs=read-write" in refused.value.hint


async def test_when_all_connections_are_in_use_nothing_was_asked(fleet: Fleet) -> None:
    database = Database(fleet.working, pool_size=1, answer_seconds=0.1)

    async def look() -> None:
        async with database.reading():
            pass

    async with database.reading(), database.reading():
        with pytest.raises(TimedOut) as refused:
            await database.within_time(look(), 30.0)
    await database.close()

    assert refused.value.message == "All our connections are in use."
    assert refused.value.hint.startswith("Nothing was asked of the database. Try again")

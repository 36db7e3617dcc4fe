"""What the database's complaints mean to a person."""

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agent_console.domain.errors import DatabaseUnavailable, TimedOut
from agent_console.domain.team_settings import SettingChange
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.repository import open_direct
from tests.support.fleet import Fleet


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

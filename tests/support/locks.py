"""Who waits for whom in the database: for tests that let two meet at one place."""

from tests.support.fleet import Fleet
from tests.support.until import until

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def somebody_waits_for_a_lock(fleet: Fleet, how_many: int = 1) -> None:
    await until(lambda: fleet.one(WAITING) == how_many)

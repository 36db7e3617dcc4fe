"""Who waits for whom in the database: for tests that let two meet at one place."""

import asyncio

from tests.support.fleet import Fleet
from tests.support.until import until

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def somebody_waits_for_a_lock(
    fleet: Fleet, how_many: int = 1, *, task: "asyncio.Task[object] | None" = None
) -> None:
    """A task that is given is one of them: if it has ended, nobody has to be waited for."""

    def waiting() -> bool:
        assert task is None or not task.done(), "it did not have to wait"
        return fleet.one(WAITING) == how_many

    await until(waiting)

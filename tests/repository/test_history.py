"""How long a finished job is kept: as long as its team says, and not a row of anything else goes with it."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from agent_console.repository.postgres.duties.queue import BATCH, prune_jobs
from agent_console.repository.postgres.duties.rounds import DUTIES
from agent_console.repository.postgres.repository import Backend
from tests.support.conversations import add_run, add_thread, say
from tests.support.fleet import Fleet

# As if they had been made so long ago: an id tells when.
AGED = """
    insert into jobs (team_id, id, lane_id, type, status, payload, created_at, finished_at)
    select j.team_id,
           (lpad(to_hex((extract(epoch from now() - %(days)s * interval '1 day') * 1000)::bigint), 12, '0')
            || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid,
           j.lane_id, 'aged', %(status)s, '{}', now() - %(days)s * interval '1 day',
           case when %(status)s in ('succeeded', 'failed', 'dead_letter', 'cancelled')
                then now() - %(finished)s * interval '1 day' end
      from (select * from jobs limit 1) as j, generate_series(1, %(count)s) as n
 returning id
"""


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


def aged(
    fleet: Fleet, days: int, *, status: str = "succeeded", finished: int | None = None, count: int = 1
) -> None:
    with psycopg.connect(fleet.administration) as connection:
        facts = {
            "days": days,
            "status": status,
            "finished": days if finished is None else finished,
            "count": count,
        }
        rows = connection.execute(AGED, facts).fetchall()
        connection.cursor().executemany(
            "insert into job_events (team_id, id, job_id, message)"
            " select team_id, new_id(), id, 'created as queued' from jobs where id = %s",
            rows,
        )


def left(fleet: Fleet) -> object:
    return fleet.one("select count(*) from jobs where type = 'aged'")


@pytest.mark.rule("U000-46")
@pytest.mark.parametrize("status", ["succeeded", "failed", "dead_letter", "cancelled"])
async def test_after_ninety_days_a_finished_job_goes_with_its_story(
    backend: Backend, fleet: Fleet, status: str
) -> None:
    aged(fleet, 91, status=status)
    aged(fleet, 88, status=status)
    others = fleet.one("select count(*) from jobs where type <> 'aged'")

    pruned = await prune_jobs(backend)

    assert (pruned, left(fleet)) == (1, 1)
    assert fleet.one("select count(*) from job_events e join jobs j on j.id = e.job_id where type = 'aged'") == 1
    assert fleet.one("select count(*) from jobs where type <> 'aged'") == others


async def test_the_teams_own_setting_counts(backend: Backend, fleet: Fleet) -> None:
    fleet.execute("insert into settings (team_id, name, value) select id, 'job_history_days', '7' from teams")
    aged(fleet, 9)
    aged(fleet, 5)

    pruned = await prune_jobs(backend)

    assert (pruned, left(fleet)) == (1, 1)


async def test_what_still_waits_or_ended_lately_stays(backend: Backend, fleet: Fleet) -> None:
    aged(fleet, 200, status="queued")
    aged(fleet, 201, finished=3)

    pruned = await prune_jobs(backend)

    assert (pruned, left(fleet)) == (0, 2)


async def test_a_long_history_goes_in_parts(backend: Backend, fleet: Fleet) -> None:
    aged(fleet, 100, count=BATCH + 7)

    pruned = await prune_jobs(backend)

    assert (pruned, left(fleet)) == (BATCH + 7, 0)


async def test_the_program_itself_may_not_delete(fleet: Fleet) -> None:
    with psycopg.connect(fleet.working) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from jobs")


@pytest.mark.rule("R002-119")
async def test_conversations_are_kept_for_ever(fleet: Fleet, backend: Backend) -> None:
    thread_id = add_thread(fleet)
    say(fleet, thread_id)
    add_run(fleet, thread_id, "atlas")
    for table in ("threads", "messages", "runs"):
        fleet.execute(f"update {table} set created_at = now() - interval '10 years'")
    aged(fleet, 4000)

    for duty in DUTIES:
        await duty.round(backend)

    assert left(fleet) == 0
    assert [fleet.one(f"select count(*) from {table}") for table in ("threads", "messages", "runs")] == [1, 1, 1]

"""What others do to the same jobs at the same moment: their jobs are passed over, and nobody gets one twice."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from agent_console.domain.ids import JobId
from agent_console.domain.working import CancelAcknowledged, Ended, JobFailed
from agent_console.repository.operations.working import JOBS_ACKNOWLEDGE, JOBS_FAIL
from agent_console.repository.postgres.repository import open_direct
from tests.database.team import Row
from tests.database.turning import short_turn, turn, turns_together
from tests.queue.crew import Crew, claim, take, take_running, until
from tests.support.connectors import make_connector
from tests.support.fleet import Fleet
from tests.support.locks import WAITING, somebody_waits_for_a_lock


@contextmanager
def taken_by_others(fleet: Fleet, *jobs: JobId) -> Iterator[None]:
    with psycopg.connect(fleet.administration) as others:
        others.execute("select from jobs where id = any(%s) for update", (list(jobs),))
        yield


def agent_of(crew: Crew, name: str = "atlas") -> Row:
    return {"team_id": crew.fleet.team_id(), "id": crew.id_of(name)}


def lanes_of(crew: Crew, *jobs: JobId) -> list[object]:
    found = {row["id"]: row["lane_id"] for row in crew.rows("select id, lane_id from jobs")}
    return [found[job] for job in jobs]


async def test_the_next_of_a_lane_will_do_if_others_take_its_first(direct_crew: Crew) -> None:
    first, second = [await direct_crew.enqueue(priority=priority) for priority in (7, 6)]
    other_lane = await direct_crew.enqueue("else", priority=5)
    lanes = lanes_of(direct_crew, first.id, other_lane.id)

    with taken_by_others(direct_crew.fleet, first.id):
        got = short_turn(direct_crew.rows, agent_of(direct_crew), lanes)

    assert (got["done"], got["job_id"]) == (True, second.id)


async def test_the_next_of_a_lane_is_not_taken_before_what_is_better_in_another(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    first, second = [await direct_crew.enqueue(priority=priority) for priority in (7, 1)]
    better = await direct_crew.enqueue("else", priority=5)

    with taken_by_others(direct_crew.fleet, first.id):
        claimed = await claim(atlas)

    assert [job.id for job in claimed.jobs] == [better.id]
    assert direct_crew.status(second.id) == "queued"


async def test_many_more_are_looked_at_if_others_take_all_that_were(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")
    jobs = [await direct_crew.enqueue() for _ in range(12)]

    with taken_by_others(direct_crew.fleet, *(job.id for job in jobs[:10])):
        async with asyncio.timeout(20):
            claimed = await claim(atlas, count=2)

    assert [job.id for job in claimed.jobs] == [job.id for job in jobs[10:]]


async def test_a_job_for_one_agent_alone_that_somebody_is_changing_is_passed_over(direct_crew: Crew) -> None:
    atlas, mine = await direct_crew.agent("atlas"), direct_crew.id_of("atlas")
    first, second = [await direct_crew.enqueue(bound_agent_id=mine) for _ in range(2)]
    direct_crew.fleet.execute("update agents set max_concurrent_jobs = 2 where name = 'atlas'")

    with taken_by_others(direct_crew.fleet, first.id):
        async with asyncio.timeout(20):
            claimed = await claim(atlas, count=2)

    assert [job.id for job in claimed.jobs] == [second.id]


async def test_what_is_due_and_somebody_is_changing_is_left_for_the_next_look(direct_crew: Crew) -> None:
    later = "2020-01-01T00:00:00Z"
    first, second = await direct_crew.enqueue(), await direct_crew.enqueue()
    direct_crew.fleet.execute(
        "update jobs set status = 'scheduled', scheduled_for = %s, look_at = %s", *(later, later)
    )

    with taken_by_others(direct_crew.fleet, first.id), psycopg.connect(direct_crew.fleet.administration) as time:
        time.execute("set lock_timeout = '20s'")
        tended = time.execute("select job_id from tend_jobs(10)").fetchall()

    assert tended == [(second.id,)]


# Whoever reads the table as the program does waits at the gate, after it has seen which jobs there are.
GATE = """
    create function gate() returns boolean language plpgsql as $$
    begin
        perform pg_advisory_xact_lock_shared(7);
        return true;
    end $$;
    alter table {0} enable row level security;
    create policy gate on {0} using (gate());
"""


@pytest.mark.parametrize("bound", [False, True], ids=["for anybody", "for one agent alone"])
async def test_a_job_that_somebody_took_after_it_was_seen_is_not_given_again(
    direct_crew: Crew, bound: bool
) -> None:
    """Where jobs for one agent alone are looked for, and only there, their connectors are too."""
    fleet = direct_crew.fleet
    async with open_direct(fleet.working, user="ana@example.com") as admin:
        connector = (await make_connector(admin, "photos")).id
    alone: Row = {"bound_agent_id": direct_crew.id_of("atlas"), "connector_id": connector} if bound else {}
    made = await direct_crew.enqueue("work", **alone)
    lanes = [] if bound else lanes_of(direct_crew, made.id)
    fleet.execute(GATE.format("connectors" if bound else "jobs"))

    def take() -> list[Row]:
        with psycopg.connect(fleet.administration, row_factory=dict_row) as connection:
            connection.execute("set role agent_console_app")
            connection.execute("set enable_seqscan = off")
            connection.execute("set enable_bitmapscan = off")
            return turns_together(
                lambda statement, *values: connection.execute(statement.encode(), values).fetchall(),
                *(fleet.team_id(), [turn(agent_of(direct_crew))], lanes),
            )

    with psycopg.connect(fleet.administration) as others:
        others.execute("select pg_advisory_xact_lock(7)")
        taking = asyncio.create_task(asyncio.to_thread(take))
        await until(lambda: fleet.one(WAITING) == 1)
        others.execute("update jobs set status = 'cancelled', finished_at = now(), look_at = null")
    (answer,) = await taking

    assert (answer["standing"], answer["job_id"]) == ("open", None)
    assert direct_crew.status(made.id) == "cancelled"


async def while_held(crew: Crew, job: JobId, change: str, saying: Coroutine[Any, Any, Ended]) -> Ended:
    """What becomes of an ending that waits for somebody who changes the job in that moment."""
    with psycopg.connect(crew.fleet.administration) as changing:
        changing.execute(change.encode(), (job,))
        ending = asyncio.create_task(saying)
        await somebody_waits_for_a_lock(crew.fleet, task=ending)
    return await ending


async def test_a_cancel_in_the_moment_of_a_failure_ends_the_job_at_the_first_word(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take_running(atlas)
    asked = "update jobs set cancel_requested_at = now() where id = %s"
    said = JobFailed(job_id=made.id, attempt=1, error="x", retryable=True)

    ended = await while_held(direct_crew, made.id, asked, atlas.call(JOBS_FAIL, said))

    assert (ended.status, direct_crew.status(made.id)) == ("cancelled", "cancelled")


async def test_a_start_in_the_moment_of_an_acknowledgement_is_no_reason_to_refuse_it(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take(atlas)
    direct_crew.fleet.execute("update jobs set cancel_requested_at = now() where id = %s", made.id)
    started = "update jobs set status = 'running', started_at = now() where id = %s"
    said = CancelAcknowledged(job_id=made.id, attempt=1)

    ended = await while_held(direct_crew, made.id, started, atlas.call(JOBS_ACKNOWLEDGE, said))

    assert (ended.status, direct_crew.status(made.id)) == ("cancelled", "cancelled")


async def test_a_start_in_the_moment_of_a_failure_is_counted_from_where_it_led(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take(atlas)
    started = "update jobs set status = 'running', started_at = now() where id = %s"
    said = JobFailed(job_id=made.id, attempt=1, error="x", retryable=False)

    await while_held(direct_crew, made.id, started, atlas.call(JOBS_FAIL, said))

    moves = direct_crew.rows("select came_from, went_to from queue_moves order by id")
    assert [(move["came_from"], move["went_to"]) for move in moves][-2:] == [
        ("assigned", "running"),
        ("running", "failed"),
    ]

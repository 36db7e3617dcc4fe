"""How the queue goes, through both repositories."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from agent_console.database.roles import APP
from agent_console.domain.ids import JobId, LaneId
from agent_console.domain.jobs import JobAsked, NewJob
from agent_console.domain.queue_stats import LANES_SHOWN, TYPES_SHOWN, QueueStats
from agent_console.domain.records import Nothing
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.explaining import JOBS_EXPLAIN, QUEUE_STATS
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.repository.conftest import ADMIN, OpenRepository
from tests.support.fleet import Fleet

FOLD = "select fold_queue_moves(0, 100000)"


async def stats_of(repository: Repository) -> QueueStats:
    return await repository.call(QUEUE_STATS, Nothing())


async def made(repository: Repository, type: str = "scan", **facts: object) -> JobId:
    wanted = NewJob.model_validate({"type": type, "payload": {}, **facts})
    return (await repository.call(JOBS_CREATE, wanted)).id


def claim(fleet: Fleet, job_id: JobId, *, lease: str = "1 hour") -> None:
    fleet.execute(
        "update jobs set status = 'running', agent_id = %s, claimed_by = 'atlas', assigned_at = now(),"
        " started_at = now(), lease_seconds = 3600, lease_expires_at = now() + %s::interval,"
        " look_at = now() + %s::interval where id = %s",
        *(fleet.agent_id("atlas"), lease, lease, job_id),
    )


def end(fleet: Fleet, job_id: JobId, status: str) -> None:
    fleet.execute(
        "update jobs set status = %s, claimed_by = null, lease_expires_at = null, look_at = null,"
        " finished_at = now() where id = %s",
        *(status, job_id),
    )


def counted(fleet: Fleet) -> dict[object, object]:
    counts = {row[0]: row[1] for row in fleet.execute("select status, count(*) from jobs group by status")}
    return {status: counts.get(status.value, 0) for status in JobStatus}


async def test_every_state_is_counted_exactly_folded_or_not(repository: Repository, fleet: Fleet) -> None:
    fleet.execute(FOLD)
    jobs = [await made(repository, priority=number) for number in range(3)]
    claim(fleet, jobs[0])
    claim(fleet, jobs[1])
    end(fleet, jobs[1], "succeeded")
    unfolded = await stats_of(repository)
    fleet.execute(FOLD)
    folded = await stats_of(repository)

    for stats in (unfolded, folded):
        assert {depth.status: depth.jobs for depth in stats.by_status} == counted(fleet)
    assert unfolded.totals == folded.totals
    assert folded.at >= unfolded.at


async def test_the_lanes_and_types_with_most_waiting_come_first(repository: Repository, fleet: Fleet) -> None:
    for _ in range(9):
        await made(repository, "scan", required_capabilities=["gpu"])
    held = await made(repository, "scan", required_capabilities=["gpu"])
    claim(fleet, held)

    stats = await stats_of(repository)

    first = stats.by_lane[0]
    assert (first.lane, first.waiting, first.held) == ("jobs of type scan for agents with gpu", 9, 1)
    assert (stats.by_type[0].type, stats.by_type[0].waiting, stats.by_type[0].held) == ("scan", 9, 1)
    waiting = [lane.waiting for lane in stats.by_lane]
    assert waiting == sorted(waiting, reverse=True)
    assert (stats.lanes_capped, stats.types_capped) == (False, False)


async def test_of_many_lanes_and_types_only_some_are_shown_and_it_says_so(
    repository: Repository, fleet: Fleet
) -> None:
    for number in range(max(LANES_SHOWN, TYPES_SHOWN) + 1):
        lane_id = LaneId.new()
        fleet.execute(
            "insert into lanes (team_id, id, key, job_type) values (%s, %s, encode(sha256(%s::bytea), 'hex'), %s)",
            *(fleet.team_id(), lane_id, f"lane {number}", f"type {number}"),
        )
        fleet.execute(
            "insert into jobs (team_id, id, lane_id, type, payload) values (%s, %s, %s, %s, '{}')",
            *(fleet.team_id(), JobId.new(), lane_id, f"type {number}"),
        )

    stats = await stats_of(repository)

    assert (len(stats.by_lane), stats.lanes_capped) == (LANES_SHOWN, True)
    assert (len(stats.by_type), stats.types_capped) == (TYPES_SHOWN, True)


async def test_totals_tell_what_became_of_jobs(repository: Repository, fleet: Fleet) -> None:
    before = (await stats_of(repository)).totals
    jobs = [await made(repository) for _ in range(5)]
    for job_id in jobs:
        claim(fleet, job_id)
    for job_id, status in zip(jobs, ("succeeded", "succeeded", "failed", "dead_letter", "cancelled"), strict=True):
        end(fleet, job_id, status)

    after = (await stats_of(repository)).totals

    grown = {name: total - getattr(before, name) for name, total in after.model_dump().items()}
    waited = grown.pop("claim_wait_seconds")
    assert grown == {
        "created": 5, "claims": 5, "completions": 2, "failures": 1, "retries": 0, "dead_letters": 1,
        "cancellations": 1, "lease_losses": 0,
    }  # fmt: skip
    assert waited > 0


async def test_a_lost_lease_is_counted(repository: Repository, fleet: Fleet) -> None:
    job_id = await made(repository)
    claim(fleet, job_id, lease="-1 second")

    fleet.execute("select tend_jobs(10)")
    totals = (await stats_of(repository)).totals

    assert (totals.lease_losses, totals.retries) == (1, 1)


async def test_a_job_that_changes_lanes_is_not_created_twice(repository: Repository, fleet: Fleet) -> None:
    job_id, other = await made(repository), await made(repository, required_capabilities=["gpu"])
    before = (await stats_of(repository)).totals.created

    fleet.execute(
        "update jobs set lane_id = (select lane_id from jobs where id = %s) where id = %s", other, job_id
    )

    assert (await stats_of(repository)).totals.created == before


async def test_how_long_claimed_jobs_waited_is_averaged(repository: Repository, fleet: Fleet) -> None:
    nothing_yet = await stats_of(repository)
    job_id = await made(repository)
    fleet.execute("update jobs set created_at = now() - interval '100 seconds' where id = %s", job_id)
    claim(fleet, job_id)

    stats = await stats_of(repository)

    assert nothing_yet.average_claim_wait_seconds is None
    assert stats.average_claim_wait_seconds == pytest.approx(100, abs=60)


async def test_the_oldest_queued_job_tells_its_age(repository: Repository, fleet: Fleet) -> None:
    job_id = await made(repository)
    fleet.execute("update jobs set created_at = now() - interval '1 hour' where id = %s", job_id)

    stats = await stats_of(repository)

    assert stats.oldest_queued_seconds == pytest.approx(3600, abs=60)


async def test_an_empty_team_has_nothing_and_no_part_of_another(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")

    stats = await stats_of(other)

    assert {depth.jobs for depth in stats.by_status} == {0}
    assert (stats.by_type, stats.by_lane, stats.oldest_queued_seconds) == ((), (), None)
    assert set(stats.totals.model_dump().values()) == {0}


@contextmanager
def sees_no_others(fleet: Fleet) -> Iterator[None]:
    """As where an administrator did not let the program see everybody's transactions."""
    fleet.execute(f"revoke pg_read_all_stats from {APP}")
    try:
        yield
    finally:
        fleet.execute(f"grant pg_read_all_stats to {APP}")


async def test_an_old_transaction_is_warned_of_wherever_one_looks(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.domain.why_waiting.OLD_TRANSACTION_SECONDS", -1)
    with psycopg.connect(fleet.administration) as forgotten:
        forgotten.execute("select count(*) from jobs")
        async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
            stats = await stats_of(repository)
            asked = JobAsked(job_id=fleet.first_job("queued"))
            explanation = await repository.call(JOBS_EXPLAIN, asked)

    assert stats.oldest_transaction_seconds is not None
    assert stats.oldest_transaction_seconds >= 0
    assert stats.warnings == explanation.warnings != ()


async def test_many_lanes_are_warned_of(repository: Repository, fleet: Fleet) -> None:
    before = await repository.call(QUEUE_STATS, Nothing())
    fleet.execute(
        "insert into lanes (team_id, id, key, job_type)"
        " select %s, new_id(), encode(sha256(n::text::bytea), 'hex'), n::text from generate_series(1, 201) as n",
        fleet.team_id(),
    )

    after = await repository.call(QUEUE_STATS, Nothing())

    assert not any("lanes" in words for words in before.warnings)
    assert any(words.startswith("There are more than 200 lanes") for words in after.warnings)


async def test_a_snapshot_that_may_not_be_seen_is_counted_as_hidden(fleet: Fleet) -> None:
    with sees_no_others(fleet), psycopg.connect(fleet.administration) as forgotten:
        forgotten.execute("set transaction isolation level repeatable read")
        forgotten.execute("select count(*) from jobs")
        await_more = "insert into settings (team_id, name, value) select id, 'x', '1' from teams"
        fleet.execute(await_more)
        async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
            stats = await stats_of(repository)

    assert stats.oldest_transaction_seconds is None
    assert stats.hidden_transactions >= 1
    assert stats.oldest_snapshot_transactions >= 1
    assert stats.warnings == ()

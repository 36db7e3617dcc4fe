"""What time alone changes: who is due becomes what it should, with its story, and nobody else is touched."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest import mark, param

from tests.database import rows
from tests.database.job_states import in_state
from tests.database.queue_counted import same_as_counted
from tests.database.team import Row, Team
from tests.database.turning import add_worker, held_by, now, story
from tests.support.clusters import TemplateDatabase

TEND = "select job_id, lane_id, was, status from tend_jobs(10)"
HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "tending") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


@pytest.fixture
def atlas(team: Team) -> Row:
    return add_worker(team, worker_id="atlas")


def ago(team: Team, seconds: float) -> object:
    (clock,) = team.execute("select now() - make_interval(secs => %s) as at", seconds)
    return clock["at"]


def stored(team: Team, job: Row) -> Row:
    return team.stored("jobs", {"id": job["id"]})


def tended(team: Team) -> list[tuple[Any, object, object]]:
    return [(row["job_id"], row["was"], row["status"]) for row in team.execute(TEND)]


def overdue(team: Team, agent: Row, **facts: object) -> Row:
    """A lease that ended ten seconds ago."""
    held = held_by(agent, assigned_at=ago(team, 70), started_at=ago(team, 70), lease_seconds=60, attempt=1)
    told: Row = {"lease_expires_at": ago(team, 10), "progress": {"percentage": 7}}
    return rows.add_job(team, **(held | told | facts))


def lost(team: Team) -> list[object]:
    return [row["jobs"] for row in team.execute("select jobs from queue_moves where went_to = 'lost'")]


def test_who_is_not_due_is_left_alone(team: Team, atlas: Row) -> None:
    rows.add_job(team)
    rows.add_job(team, **in_state("scheduled", scheduled_for=rows.LATER))
    rows.add_job(team, next_attempt_at=rows.LATER)
    rows.add_job(team, **held_by(atlas))
    rows.add_job(team, **in_state("succeeded"))
    before = team.execute("select * from jobs order by id")

    assert (tended(team), team.execute("select * from jobs order by id")) == ([], before)


def test_what_was_put_off_may_be_taken_when_its_time_has_come(team: Team) -> None:
    scheduled = rows.add_job(team, **in_state("scheduled", scheduled_for=now))
    again_at = ago(team, 1)
    failed: Row = {"error_code": "broken", "error_message": "why", "updated_at": again_at}
    again = rows.add_job(team, next_attempt_at=again_at, **failed)

    found = tended(team)

    assert found == [(again["id"], "queued", "ready"), (scheduled["id"], "scheduled", "ready")]
    looks = "select id from jobs where look_at = '-infinity' order by id"
    assert [row["id"] for row in team.execute(looks)] == [scheduled["id"], again["id"]]
    kept = stored(team, again)
    assert (kept["status"], kept["next_attempt_at"], kept["updated_at"]) == ("queued", again_at, again_at)
    assert (kept["error_code"], kept["error_message"], kept["finished_at"]) == ("broken", "why", None)
    assert (story(team, scheduled), story(team, again), lost(team)) == ([], [], [])


def test_a_lost_lease_is_another_try(team: Team, atlas: Row) -> None:
    job = overdue(team, atlas)

    assert tended(team) == [(job["id"], "running", "queued")]

    kept, why = stored(team, job), "lease expired: atlas did not renew it for 60 s"
    names = ("agent_id", "assigned_at", "progress", "claimed_by", "lease_expires_at", "finished_at")
    assert [kept[name] for name in names] == [None] * 6
    assert (kept["status"], kept["attempt"], kept["error_code"]) == ("queued", 2, "lease_expired")
    assert (kept["error_message"], kept["updated_at"]) == (why, now(team))
    assert kept["look_at"] == kept["next_attempt_at"]
    assert isinstance(kept["look_at"], datetime)
    waits = kept["look_at"] - now(team)
    assert 0.9 * HALF_A_MINUTE <= waits <= 1.1 * HALF_A_MINUTE
    assert story(team, job) == [("warn", f"running to queued: {why}")]
    assert lost(team) == [1]
    assert same_as_counted(team)


LATE, LONG = "the deadline of its run is over", "it ran longer than it may"
LEASE = "lease expired: atlas did not renew it for 60 s"
ENDS = (
    param({"max_attempts": 1}, "dead_letter", "lease_expired", LEASE, id="the last attempt"),
    param({"cancel_requested_at": now}, "cancelled", "lease_expired", LEASE, id="asked to stop"),
    param({"max_attempts": 1, "max_run_seconds": 70}, "dead_letter", "max_run_time", LONG, id="too long"),
)


@mark.parametrize(("facts", "becomes", "code", "why"), ENDS)
def test_what_is_not_tried_again_ends(
    team: Team, atlas: Row, facts: Row, becomes: str, code: str, why: str
) -> None:
    job = overdue(team, atlas, **facts)

    assert tended(team) == [(job["id"], "running", becomes)]

    kept = stored(team, job)
    assert (kept["status"], kept["attempt"], kept["agent_id"]) == (becomes, 1, atlas["id"])
    assert (kept["progress"], kept["assigned_at"]) == ({"percentage": 7}, ago(team, 70))
    assert (kept["error_code"], kept["error_message"], kept["finished_at"]) == (code, why, now(team))
    assert [kept[name] for name in ("look_at", "claimed_by", "lease_expires_at", "next_attempt_at")] == [None] * 4
    assert story(team, job) == [("error", f"running to {becomes}: {why}")]
    assert lost(team) == ([1] if code == "lease_expired" else [])


def test_what_ran_too_long_is_tried_again_although_its_lease_holds(team: Team, atlas: Row) -> None:
    job = overdue(team, atlas, lease_expires_at=rows.LATER, max_run_seconds=60, look_at=now)

    assert tended(team) == [(job["id"], "running", "queued")]

    assert (stored(team, job)["error_code"], stored(team, job)["error_message"]) == ("max_run_time", LONG)
    assert lost(team) == []


def test_the_deadline_of_its_own_run_ends_a_job_and_that_of_another_does_not(team: Team, atlas: Row) -> None:
    late, early = (rows.add_run(team, deadline_at=at)["id"] for at in (now, rows.LATER))
    ended = overdue(team, atlas, run_id=late, lease_expires_at=rows.LATER, look_at=now)
    other = overdue(team, atlas, run_id=early)
    without = overdue(team, atlas)

    found = [(job, becomes) for job, _, becomes in tended(team)]

    assert sorted(found) == [(ended["id"], "failed"), (other["id"], "queued"), (without["id"], "queued")]
    kept = stored(team, ended)
    assert (kept["error_code"], kept["error_message"], kept["finished_at"]) == ("deadline", LATE, now(team))
    assert story(team, ended) == [("error", f"running to failed: {LATE}")]


@mark.parametrize("longest", [None, 3600])
def test_a_lease_that_was_renewed_is_looked_at_when_it_ends_and_nobody_is_told(
    team: Team, atlas: Row, longest: int | None
) -> None:
    renewed = ago(team, -60)
    job = overdue(team, atlas, lease_expires_at=renewed, look_at=now, updated_at=ago(team, 5), error_code="old")
    if longest is not None:
        team.execute("update jobs set max_run_seconds = %s", longest)
    before = stored(team, job)

    assert tended(team) == []

    assert stored(team, job) == before | {"look_at": renewed}
    assert (story(team, job), lost(team)) == ([], [])

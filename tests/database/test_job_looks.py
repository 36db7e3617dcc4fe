"""When somebody has to look at a job again: at once, at a time, or never, as its state asks for."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from pytest import mark, param

from tests.database import rows
from tests.database.endless_times import AT_ONCE
from tests.database.job_states import AT, FINAL, in_state
from tests.database.rows import adding, refused_by
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

BEFORE = AT - timedelta(minutes=1)
AFTER = AT + timedelta(minutes=1)
# No datetime tells it, so that it is written as text.
NOW = "-infinity"
HELD = ("assigned", "running")


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "job_looks") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


FIRST = (
    param(in_state("queued"), AT_ONCE),
    param(in_state("queued", next_attempt_at=AT), AT, marks=mark.rule("R001-14")),
    param(in_state("queued", scheduled_for=AT), AT_ONCE),
    param(in_state("scheduled"), AT, marks=mark.rule("R000-75")),
    *(param(in_state(status), AT) for status in HELD),
    *(param(in_state(status), None) for status in FINAL),
)


@mark.parametrize(("state", "look_at"), FIRST)
def test_whoever_puts_a_job_in_need_not_say_when_it_is_looked_at(team: Team, state: Row, look_at: object) -> None:
    job = rows.add_job(team, **state)

    assert team.stored("jobs", job)["look_at"] == look_at


SAID = (
    param(in_state("queued", next_attempt_at=AT, look_at=NOW), AT_ONCE),
    param(in_state("scheduled", look_at=NOW), AT_ONCE, marks=mark.rule("R000-84")),
    *(param(in_state(status, look_at=BEFORE), BEFORE) for status in HELD),
)


@mark.parametrize(("state", "look_at"), SAID)
def test_whoever_says_when_is_heard(team: Team, state: Row, look_at: object) -> None:
    """A retry and a schedule that have come due, and a deadline that ends before the lease."""
    job = rows.add_job(team, **state)

    assert team.stored("jobs", job)["look_at"] == look_at


# For each state, the times at which nobody would find it, or at which somebody would look in vain.
WRONG = (
    param(in_state("queued"), (None, AT)),
    param(in_state("queued", next_attempt_at=AT), (None, BEFORE, AFTER)),
    param(in_state("scheduled"), (None, BEFORE, AFTER)),
    *(param(in_state(status), (None, NOW)) for status in HELD),
    *(param(in_state(status), (AT, NOW)) for status in FINAL),
)


@mark.parametrize(("state", "looks"), WRONG)
def test_a_look_that_does_not_fit_the_state_is_refused(team: Team, state: Row, looks: tuple[object, ...]) -> None:
    job = rows.add_job(team, **state)
    change = "update jobs set look_at = %s where id = %s"

    refusals = [refused_by(team, partial(team.execute, change, at, job["id"])) for at in looks]

    assert refusals == ["jobs_look_state"] * len(looks)


@mark.parametrize("state", [in_state("queued", next_attempt_at=AT), in_state("scheduled")])
def test_a_job_whose_time_has_come_may_be_claimed_at_once(team: Team, state: Row) -> None:
    job = rows.add_job(team, **state)

    team.execute("update jobs set look_at = '-infinity' where id = %s", job["id"])

    kept = team.stored("jobs", job)
    assert (kept["look_at"], kept["next_attempt_at"]) == (AT_ONCE, state.get("next_attempt_at"))


def test_an_ended_job_is_put_in_with_no_look_at_all(team: Team) -> None:
    refusal = refused_by(team, adding(team, "jobs", **in_state("succeeded", look_at=AT)))

    assert refusal == "jobs_look_state"


@mark.rule("R003-24")
def test_renewing_a_lease_touches_no_index(team: Team) -> None:
    """Its look stays where it is, and is moved only when it has come."""
    job = rows.add_job(team, **in_state("running"))
    before = written_in_page(team)

    team.execute(
        "update jobs set lease_expires_at = %s, updated_at = now() where id = %s", *(rows.LATER, job["id"])
    )

    assert written_in_page(team) == before + 1
    assert team.stored("jobs", job)["look_at"] == AT


def written_in_page(team: Team) -> int:
    (found,) = team.execute("select n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'jobs'")
    return int(str(found["n_tup_hot_upd"]))

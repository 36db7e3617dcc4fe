"""The counts that screens read instead of counting: what is counted and what is not yet are together the truth."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from pytest import mark, param

from agent_console.domain.ids import LaneId
from tests.database import rows
from tests.database.job_states import AT, STATES, in_state
from tests.database.queue_counted import COUNTED, fold, same_as_counted
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

MANY = 300
Moves: TypeAlias = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "queue_counts") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


@pytest.fixture
def busy(team: Team) -> Team:
    """Two teams with two lanes each, and a job of every status in all of them."""
    for each in (team, rows.make_team(team.connection, "south")):
        for lane in (rows.lane_id(each), rows.lane_id(each)):
            for status in STATES:
                rows.add_job(each, lane_id=lane, **in_state(status))
    return team


def moves(team: Team) -> Moves:
    found = team.execute("select came_from, went_to, jobs, waited_seconds from queue_moves order by id")
    return [tuple(row.values()) for row in found]


OTHER_LANE = "(select min(l.id::text)::uuid from lanes l where l.team_id = j.team_id)"
STEPS = (
    param(
        "insert into jobs (team_id, id, lane_id, type, payload) select l.team_id, new_id(), l.id, 'report', '{}'"
        " from lanes l, generate_series(1, 3)",
        id="insert",
    ),
    param(
        "update jobs set status = 'cancelled', finished_at = now(), look_at = null"
        " where status in ('queued', 'scheduled')",
        id="update",
    ),
    param(f"update jobs j set lane_id = {OTHER_LANE}", id="change of lane"),
    param(
        f"update jobs j set lane_id = {OTHER_LANE}, status = 'cancelled', finished_at = now(), look_at = null"
        " where status = 'queued'",
        id="change of lane and status",
    ),
    param("delete from jobs where status in ('succeeded', 'queued')", id="delete"),
    param("delete from jobs", id="delete all"),
)


@mark.parametrize("folded_before", [True, False])
@mark.parametrize("step", STEPS)
def test_the_counts_are_right_after_every_step_and_every_fold(busy: Team, step: str, folded_before: bool) -> None:
    if folded_before:
        fold(busy)
    before = busy.execute(COUNTED)

    busy.execute(step)

    assert busy.execute(COUNTED) != before
    assert same_as_counted(busy)
    fold(busy)
    assert same_as_counted(busy)
    assert moves(busy) == []


@mark.parametrize("change", ["lease_expires_at = lease_expires_at, updated_at = now()", "priority = 7"])
def test_a_statement_that_moves_no_job_writes_nothing(busy: Team, change: str) -> None:
    fold(busy)

    busy.execute(f"update jobs set {change}")

    assert moves(busy) == []


def test_a_statement_of_many_jobs_writes_one_row_for_each_way_they_go(team: Team) -> None:
    lane = rows.lane_id(team)

    team.execute(
        "insert into jobs (team_id, id, lane_id, type, payload)"
        " select %s, new_id(), %s, 'report', '{}' from generate_series(1, %s)",
        *(team.team_id, lane, MANY),
    )
    team.execute("update jobs set status = 'cancelled', finished_at = now(), look_at = null")
    team.execute("delete from jobs")

    assert moves(team) == [
        (None, "queued", MANY, 0),
        ("queued", "cancelled", MANY, 0),
        ("cancelled", None, MANY, 0),
    ]


# Seconds ago, and what a claim says then about the wait. Times of one transaction: nothing passes between them.
WAITS = (
    param({"created_at": 60}, in_state("queued"), 60),
    param({"created_at": 60, "scheduled_for": 20}, in_state("scheduled", look_at="-infinity"), 20),
    param({"created_at": 60, "next_attempt_at": 10}, in_state("queued", look_at="-infinity"), 10),
    param({"created_at": 60, "scheduled_for": 20, "next_attempt_at": 10}, {"look_at": "-infinity"}, 10),
)
CLAIM = """
    update jobs set status = 'assigned', agent_id = %s, claimed_by = 'atlas', assigned_at = now(),
                    lease_expires_at = now(), look_at = now(), next_attempt_at = null
     where id = %s
"""


@mark.parametrize(("ago", "state", "seconds"), WAITS)
def test_a_claim_tells_how_long_the_job_could_have_been_taken(
    team: Team, ago: dict[str, int], state: Row, seconds: int
) -> None:
    (times,) = team.execute(
        "select " + ", ".join(f"now() - interval '{past} seconds' as {name}" for name, past in ago.items())
    )
    job = rows.add_job(team, **state | times)
    fold(team)

    team.execute(CLAIM, rows.agent_id(team), job["id"])

    assert moves(team) == [(state.get("status", "queued"), "assigned", 1, seconds)]


def test_what_is_no_claim_tells_of_no_wait(team: Team) -> None:
    job = rows.add_job(team, **in_state("running", created_at=AT))
    fold(team)

    team.execute(
        "update jobs set status = 'queued', agent_id = null, claimed_by = null, assigned_at = null,"
        " lease_expires_at = null, look_at = '-infinity' where id = %s",
        job["id"],
    )
    team.execute(
        "update jobs set status = 'cancelled', finished_at = now(), look_at = null where id = %s", job["id"]
    )

    assert moves(team) == [("running", "queued", 1, 0), ("queued", "cancelled", 1, 0)]


def test_folding_adds_up_what_happened_for_each_team(team: Team) -> None:
    other = rows.make_team(team.connection, "south")
    for _ in range(2):
        rows.add_queue_move(team, came_from="queued", went_to="running", jobs=3, waited_seconds=1.5)
        rows.add_queue_move(team, went_to="queued")
        rows.add_queue_move(other, came_from="cancelled", jobs=2)
        fold(team)

    told = team.execute("select * from queue_tallies order by team_id, came_from")

    assert [(row["team_id"], *list(row.values())[1:]) for row in told] == [
        (team.team_id, "", "queued", 2, 0),
        (team.team_id, "queued", "running", 6, 3),
        (other.team_id, "cancelled", "", 4, 0),
    ]


def test_what_is_no_change_of_state_is_told_but_not_counted(team: Team) -> None:
    rows.add_queue_move(team, lane_id=None, came_from="lease", went_to="lost", jobs=5)

    fold(team)

    assert team.execute("select came_from, went_to, jobs from queue_tallies") == [
        {"came_from": "lease", "went_to": "lost", "jobs": 5}
    ]
    assert team.execute("select * from queue_counts") == []


def test_folding_takes_the_oldest_first_and_no_more_than_it_is_told(team: Team) -> None:
    lanes = [LaneId.new() for _ in range(5)]
    for lane in lanes:
        rows.add_queue_move(team, lane_id=lane, went_to="queued")
    numbers = [row["id"] for row in team.execute("select id from queue_moves order by id")]

    rounds = [fold(team, at_most=2) for _ in range(4)]

    assert rounds == [(numbers[1], 2), (numbers[3], 2), (numbers[4], 1), (None, 0)]
    assert {row["lane_id"] for row in team.execute("select lane_id from queue_counts")} == set(lanes)


def test_folding_leaves_what_lies_before_the_place_it_is_told(team: Team) -> None:
    for _ in range(3):
        rows.add_queue_move(team, went_to="queued")
    first, *later = [row["id"] for row in team.execute("select id from queue_moves order by id")]

    after_the_first = fold(team, after=int(str(first)))
    from_the_beginning = fold(team)

    assert (after_the_first, from_the_beginning) == ((later[-1], 2), (first, 1))


def test_nothing_of_the_counts_refers_to_another_row(team: Team) -> None:
    """A foreign key would lock the row it names, and one writer would wait for another."""
    found = team.execute(
        "select conname from pg_constraint where contype = 'f' and conrelid = any(%s::regclass[])",
        ["queue_moves", "queue_counts", "queue_tallies"],
    )

    assert found == []

"""What the database makes and does for the queue by itself, on every version, and with whose rights."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from pytest import mark, param

from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, MAINTENANCE, READ_ONLY
from tests.database import rows
from tests.database.acting import acting_as
from tests.database.job_states import AT, in_state
from tests.database.queue_counted import fold, same_as_counted
from tests.database.team import Row, Team
from tests.support.clusters import Cluster, template_database

MANY = 20_000
CLOCKS_MAY_DIFFER = timedelta(seconds=1)
TAKE = "select * from take_turns(%s, %s, %s, %s, %s, null, null)"


@pytest.fixture(scope="module")
def settled(server: Cluster) -> Iterator[Team]:
    name = "queue_functions"
    with template_database(server) as databases:
        databases.clone("template0", name)
        migrate(server.dsn(name))
        with psycopg.connect(server.dsn(name)) as connection:
            yield rows.make_team(connection)
            connection.rollback()
        databases.drop(name)


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def now(team: Team) -> object:
    (clock,) = team.execute("select now() as at")
    return clock["at"]


def made_at(made: UUID) -> int:
    """Milliseconds since 1970, as the first 48 bits of an id tell them."""
    return made.int >> 80


@mark.rule("R000-9", "R004-14")
def test_an_id_of_the_databases_own_is_of_version_7_and_in_the_order_of_time(team: Team) -> None:
    (clock,) = team.execute("select clock_timestamp() as before")
    found = team.execute("select new_id() as id from generate_series(1, %s)", MANY)
    (later,) = team.execute("select clock_timestamp() as after")

    ids = [UUID(str(row["id"])) for row in found]
    moments = [made_at(each) for each in ids]
    assert {(each.version, each.variant) for each in ids} == {(7, "specified in RFC 4122")}
    assert len(set(ids)) == MANY
    assert moments == sorted(moments)
    assert moments[0] < moments[-1], "so many take longer than a millisecond"
    assert _lies_between(clock["before"], moments, later["after"])


def _lies_between(before: object, moments: list[int], after: object) -> bool:
    assert isinstance(before, datetime)
    assert isinstance(after, datetime)
    first, last = (datetime.fromtimestamp(at / 1000, before.tzinfo) for at in (moments[0], moments[-1]))
    return before - CLOCKS_MAY_DIFFER < first <= last < after + CLOCKS_MAY_DIFFER


def test_an_id_of_the_databases_own_is_taken_by_every_table(team: Team) -> None:
    (made,) = team.execute("select new_id() as id")

    job = rows.add_job(team, id=made["id"])

    assert team.stored("jobs", job)["id"] == made["id"]


@mark.rule("R001-17")
def test_a_line_without_an_id_gets_one_of_the_time_and_its_number(team: Team) -> None:
    job = rows.add_job(team)
    (clock,) = team.execute("select now() as at")

    lines = team.execute(
        "insert into job_events (team_id, job_id, message) select %s, %s, 'line' from generate_series(1, %s)"
        " returning id, seq",
        *(team.team_id, job["id"], 1000),
    )

    made = {int(str(line["seq"])): UUID(str(line["id"])) for line in lines}
    assert {(each.version, each.variant) for each in made.values()} == {(7, "specified in RFC 4122")}
    assert len(set(made.values())) == len(lines)
    assert [made[seq] for seq in sorted(made)] == sorted(made.values())
    assert _lies_between(clock["at"], sorted(made_at(each) for each in made.values()), clock["at"])


DELAYS = ((1, 15), (2, 30), (3, 60), (4, 120), (5, 240), (6, 480), (7, 600), (8, 600), (100, 600))


@mark.rule("R001-41", "U001-5")
@mark.parametrize(("attempt", "seconds"), DELAYS)
def test_a_retry_waits_twice_as_long_each_time_up_to_ten_minutes(team: Team, attempt: int, seconds: int) -> None:
    (found,) = team.execute(
        "select min(waits) as least, max(waits) as most, count(distinct waits) as different"
        " from (select extract(epoch from retry_delay(%s))::float as waits from generate_series(1, 500)) as tried",
        attempt,
    )

    least, most = float(str(found["least"])), float(str(found["most"]))
    assert 0.9 * seconds <= least < 0.95 * seconds
    assert 1.05 * seconds < most <= 1.1 * seconds
    assert int(str(found["different"])) > 400, "who failed together does not come back together"


@dataclass(frozen=True)
class Turn:
    """One agent, the lane it takes from, and the job that waits there."""

    agent: object
    job: Row

    def take(self, team: Team, **finished: object) -> list[Row]:
        turn = {"n": 1, "agent_id": _text(self.agent), "wants": 1, "lease": 60, "starts": True} | finished
        lanes, floors = [self.job["lane_id"]], [UUID(int=0)]
        return team.execute(TAKE, team.team_id, json.dumps([turn]), lanes, [-1000], floors)


def _text(made: object) -> str:
    assert isinstance(made, UUID)
    return str(UUID(int=made.int))


@pytest.fixture
def turn(team: Team) -> Turn:
    agent = rows.agent_id(team)
    rows.add_agent_runtime(team, agent_id=agent)
    return Turn(agent, rows.add_job(team, run_id=rows.run_id))


WORKING = [APP, MAINTENANCE]


@mark.rule("R001-33")
@mark.parametrize("role", WORKING)
def test_the_program_takes_a_job_and_finishes_it(team: Team, turn: Turn, role: str) -> None:
    with acting_as(team, role):
        (taken,) = turn.take(team)
        done = {"job_id": _text(taken["job_id"]), "attempt": 1, "outcome": "succeeded", "result": {"files": 7}}
        finished, *more = turn.take(team, summary="all well", **done)

    assert (taken["standing"], taken["job_id"], taken["status"]) == ("open", turn.job["id"], "running")
    assert (finished["finish"], finished["finish_status"], more) == ("ok", "succeeded", [])
    assert team.execute("select status, output_summary from runs") == [
        {"status": "succeeded", "output_summary": {"summary": "all well"}}
    ]
    assert team.execute("select result from job_results") == [{"result": {"files": 7}}]
    assert same_as_counted(team)


@mark.rule("R001-44")
@mark.parametrize("role", WORKING)
def test_the_program_tends_to_what_time_has_changed(team: Team, role: str) -> None:
    lost = rows.add_job(team, **in_state("running", assigned_at=now))
    due = rows.add_job(team, **in_state("scheduled"))

    with acting_as(team, role):
        tended = team.execute("select job_id, was, status from tend_jobs(10)")

    assert sorted((row["job_id"], row["was"], row["status"]) for row in tended) == sorted(
        [(lost["id"], "running", "queued"), (due["id"], "scheduled", "ready")]
    )
    assert team.execute("select jobs from queue_moves where went_to = 'lost'") == [{"jobs": 1}]
    assert same_as_counted(team)


@mark.parametrize("role", WORKING)
def test_the_program_folds_what_was_moved(team: Team, role: str) -> None:
    rows.add_job(team)

    with acting_as(team, role):
        _, once = fold(team)
        rows.add_queue_move(team, went_to="queued")
        _, again = fold(team)

    assert (once, again) == (1, 1)
    assert team.execute("select id from queue_moves") == []


FORBIDDEN = (
    param("select * from tend_jobs(10)"),
    param("select * from fold_queue_moves(0, 10)"),
    param("insert into queue_moves (team_id, jobs) values (new_id(), 1)"),
    param("delete from queue_moves"),
    param("update queue_counts set jobs = 0"),
    param("update queue_tallies set jobs = 0"),
)


@mark.parametrize("statement", FORBIDDEN)
def test_who_only_looks_does_none_of_it(team: Team, statement: str) -> None:
    rows.add_job(team, **in_state("running"))

    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, READ_ONLY):
        team.execute(statement)


def test_who_only_looks_takes_no_job(team: Team, turn: Turn) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, READ_ONLY):
        turn.take(team)

    assert team.stored("jobs", turn.job)["status"] == "queued"


@mark.parametrize("table", ["queue_moves", "queue_counts", "queue_tallies"])
def test_who_only_looks_sees_the_counts(team: Team, table: str) -> None:
    row = rows.ADD[table](team)

    with acting_as(team, READ_ONLY):
        kept = team.stored(table, row)

    assert kept["jobs"] == row["jobs"]


def test_pruning_jobs_is_counted_with_the_rights_of_who_prunes(team: Team) -> None:
    rows.add_job(team, **in_state("succeeded", created_at=AT))

    with acting_as(team, MAINTENANCE):
        team.execute("delete from jobs")

    assert team.execute("select came_from, went_to from queue_moves order by id") == [
        {"came_from": None, "went_to": "succeeded"},
        {"came_from": "succeeded", "went_to": None},
    ]

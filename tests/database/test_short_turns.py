"""One turn done the short way: what it does, what is no matter to it, and what it leaves to the long way."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from pytest import mark, param

from tests.database import rows
from tests.database.job_states import in_state
from tests.database.queue_counted import same_as_counted
from tests.database.team import Row, Team
from tests.database.turning import add_worker, everything, held_by, now, short_turn, story, text
from tests.support.clusters import TemplateDatabase

ROUTING = "select md5('[\"gpu\"]'::jsonb::text || %s) as mark"


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "short_turns") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


@pytest.fixture
def other(team: Team) -> Row:
    """Somebody who was there before."""
    return add_worker(team, max_concurrent_jobs=1)


@pytest.fixture
def atlas(team: Team, other: Row) -> Row:
    return add_worker(team, worker_id="atlas", max_concurrent_jobs=1, capabilities=["gpu"])


def kept(team: Team, job: Row, *names: str) -> list[object]:
    stored = team.stored("jobs", {"id": job["id"]})
    return [stored[name] for name in names]


@mark.parametrize(("starts", "status", "words"), [(True, "running", " to running"), (False, "assigned", "")])
def test_the_best_job_of_all_lanes_is_given(team: Team, atlas: Row, starts: bool, status: str, words: str) -> None:
    low, best, next_best = (rows.add_job(team, priority=priority) for priority in (0, 7, 5))
    lanes = [low["lane_id"], best["lane_id"], next_best["lane_id"]]

    got = short_turn(team.execute, atlas, lanes, lease=60, starts=starts)

    assert (got["done"], got["job_id"], got["lane_id"], got["status"]) == (
        True,
        best["id"],
        best["lane_id"],
        status,
    )
    at = now(team)
    assert kept(team, best, "status", "agent_id", "claimed_by", "assigned_at", "started_at", "lease_seconds") == [
        *(status, atlas["id"], "atlas", at, at if starts else None, 60)
    ]
    assert kept(team, best, "lease_expires_at", "look_at", "updated_by_user_id") == [
        *(at + timedelta(seconds=60), at + timedelta(seconds=60), atlas["system_user_id"])
    ]
    assert story(team, best) == [("info", f"queued to assigned{words}: atlas")]
    assert kept(team, low, "status") == kept(team, next_best, "status") == ["queued"]
    assert same_as_counted(team)


def test_a_job_is_looked_at_when_it_has_run_too_long_for_that_lease(team: Team, atlas: Row) -> None:
    job = rows.add_job(team, max_run_seconds=20)

    short_turn(team.execute, atlas, [job["lane_id"]], lease=60)

    at = now(team)
    assert kept(team, job, "look_at") == [at + timedelta(seconds=20)]


def test_a_lane_begins_where_the_caller_says(team: Team, atlas: Row) -> None:
    before = rows.add_job(team)
    last = rows.add_job(team, lane_id=before["lane_id"])

    got = short_turn(team.execute, atlas, [before["lane_id"]], [(0, last["id"])])

    assert got["job_id"] == last["id"]


def test_what_lies_before_the_begin_of_a_lane_makes_it_no_better(team: Team, atlas: Row) -> None:
    before = rows.add_job(team, priority=9)
    low = rows.add_job(team, priority=1, lane_id=before["lane_id"])
    best = rows.add_job(team, priority=5)

    got = short_turn(team.execute, atlas, [low["lane_id"], best["lane_id"]], [(-1, low["id"])])

    assert got["job_id"] == best["id"]


def test_what_has_ended_makes_a_lane_no_better(team: Team, atlas: Row) -> None:
    ended = rows.add_job(team, priority=9, **in_state("succeeded"))
    low = rows.add_job(team, priority=1, lane_id=ended["lane_id"])
    best = rows.add_job(team, priority=5)

    got = short_turn(team.execute, atlas, [low["lane_id"], best["lane_id"]])

    assert got["job_id"] == best["id"]


def test_who_ends_its_job_gets_the_next(team: Team, atlas: Row) -> None:
    held, waiting = rows.add_job(team, **held_by(atlas)), rows.add_job(team)
    besides = [rows.add_job(team, **held_by(atlas)), rows.add_job(team, **held_by(atlas, agent_id=rows.agent_id))]

    got = short_turn(team.execute, atlas, [waiting["lane_id"]], finishes=held, summary="7 files")

    assert (got["done"], got["job_id"]) == (True, waiting["id"])
    assert kept(team, held, "status", "claimed_by", "lease_expires_at", "look_at", "finished_at") == [
        *("succeeded", None, None, None, now(team))
    ]
    assert kept(team, held, "result_summary", "agent_id") == ["7 files", atlas["id"]]
    assert [kept(team, job, "status") for job in besides] == [["running"]] * 2
    assert story(team, held) == [("info", "running to succeeded: 7 files")]
    assert story(team, waiting) == [("info", "queued to assigned to running: atlas")]
    assert same_as_counted(team)


def test_who_ends_its_job_and_wants_none_gets_none(team: Team, atlas: Row) -> None:
    held, waiting = rows.add_job(team, **held_by(atlas)), rows.add_job(team)
    team.execute("update agents set drained_at = now() where id = %s", atlas["id"])

    got = short_turn(team.execute, atlas, [waiting["lane_id"]], finishes=held, wants=False)

    assert (got["done"], got["job_id"], kept(team, waiting, "status")) == (True, None, ["queued"])
    assert kept(team, held, "status") == ["succeeded"]
    assert story(team, held) == [("info", "running to succeeded")]


def test_who_ends_its_job_while_none_waits_has_ended_it(team: Team, atlas: Row) -> None:
    held = rows.add_job(team, **held_by(atlas))

    got = short_turn(team.execute, atlas, [held["lane_id"]], finishes=held)

    assert (got["done"], got["job_id"], kept(team, held, "status")) == (True, None, ["succeeded"])
    assert same_as_counted(team)


def test_what_is_moved_after_a_turn_is_counted_as_ever(team: Team, atlas: Row) -> None:
    job = rows.add_job(team)
    short_turn(team.execute, atlas, [job["lane_id"]])

    team.execute(
        "update jobs set status = 'succeeded', finished_at = now(), look_at = null, claimed_by = null,"
        " lease_expires_at = null"
    )

    assert same_as_counted(team)


def _bound_to(team: Team, agent: Row, **facts: object) -> Row:
    lane = rows.add_lane(team, bound_agent_id=agent["id"])
    return rows.add_job(team, lane_id=lane["id"], bound_agent_id=agent["id"], **facts)


NO_MATTER = (
    param(lambda team, atlas, other: _bound_to(team, other), id="a job for another agent alone"),
    param(lambda team, atlas, other: _bound_to(team, atlas, **in_state("succeeded")), id="its own that has ended"),
    param(lambda team, atlas, other: rows.add_job(team, **held_by(other)), id="what another holds"),
    param(
        lambda team, atlas, other: rows.add_job(team, **in_state("succeeded", agent_id=atlas["id"])),
        id="what it ended",
    ),
    param(
        lambda team, atlas, other: rows.add_agent_connector(team, agent_id=other["id"]), id="another's connector"
    ),
    param(lambda team, atlas, other: team.execute("select 1"), id="nothing"),
)


@mark.parametrize("there_is", NO_MATTER)
def test_it_is_the_short_way_whatever_there_is_besides(
    team: Team, atlas: Row, other: Row, there_is: Callable[[Team, Row, Row], object]
) -> None:
    there_is(team, atlas, other)
    job = rows.add_job(team)
    (routing,) = team.execute(ROUTING, "")

    got = short_turn(
        team.execute, atlas, [job["lane_id"]], key_hash=atlas["api_key_hash"], routing=routing["mark"]
    )

    assert (got["done"], got["job_id"]) == (True, job["id"])
    assert kept(team, job, "claimed_by", "agent_id") == ["atlas", atlas["id"]]


def test_the_mark_of_what_it_does_names_its_own_connectors(team: Team, atlas: Row) -> None:
    connector = rows.add_agent_connector(team, agent_id=atlas["id"])
    (routing,) = team.execute(ROUTING, str(UUID(text(connector["connector_id"]))))
    job = rows.add_job(team)

    assert short_turn(team.execute, atlas, [job["lane_id"]], routing=routing["mark"])["job_id"] == job["id"]


def _sets(table: str, change: str) -> Callable[[Team, Row], object]:
    key = {"agents": "id", "teams": "id", "jobs": "agent_id"}[table]
    at = "team_id" if table == "teams" else "id"
    return lambda team, atlas: team.execute(f"update {table} set {change} where {key} = %s", atlas[at])


NOT_PLAIN = (
    param(_sets("agents", "deleted_at = now()"), {}, id="deleted"),
    param(_sets("agents", "revoked_at = now(), revocation_reason = 'x'"), {}, id="revoked"),
    param(_sets("agents", "drained_at = now()"), {}, id="drained"),
    param(_sets("agents", "over_limit = true"), {}, id="over its limit"),
    param(_sets("teams", "paused_at = now(), pause_mode = 'drain', pause_reason = 'x'"), {}, id="paused"),
    param(_sets("agents", "worker_id = worker_id"), {"key_hash": "0" * 64}, id="another key"),
    param(_sets("agents", "worker_id = worker_id"), {"routing": "0" * 32}, id="another mark"),
    param(_bound_to, {}, id="a job for it alone"),
    param(lambda team, atlas: rows.add_job(team, **held_by(atlas)), {}, id="at its limit"),
    param(_sets("jobs", "status = status"), {"lanes": []}, id="no lane"),
)


@mark.parametrize(("is_so", "said"), NOT_PLAIN)
def test_what_is_not_plain_is_left_to_the_long_way(
    team: Team, atlas: Row, is_so: Callable[[Team, Row], object], said: Row
) -> None:
    job = rows.add_job(team)
    is_so(team, atlas)
    before = everything(team)

    got = short_turn(team.execute, atlas, **({"lanes": [job["lane_id"]]} | said))  # type: ignore[arg-type]

    assert (got["done"], got["job_id"], everything(team)) == (False, None, before)


def test_a_job_of_a_run_is_left_to_the_long_way(team: Team, atlas: Row) -> None:
    job = rows.add_job(team, run_id=rows.run_id)
    before = everything(team)

    got = short_turn(team.execute, atlas, [job["lane_id"]])

    assert (got["done"], got["job_id"], everything(team)) == (False, None, before)


NOT_ENDED = (
    param({"agent_id": rows.agent_id}, 1, id="held by another"),
    param({"attempt": 2}, 1, id="an attempt that is over"),
    param({"status": "assigned", "started_at": None}, 1, id="not started"),
    param({"signed": True}, 1, id="signed"),
    param({"collection_id": rows.collection_id}, 1, id="of a collection"),
    param({**in_state("failed"), "claimed_by": None, "lease_expires_at": None}, 1, id="ended"),
)


@mark.parametrize("wants", [True, False])
@mark.parametrize(("facts", "attempt"), NOT_ENDED)
def test_what_it_may_not_end_is_left_to_the_long_way(
    team: Team, atlas: Row, facts: Row, attempt: int, wants: bool
) -> None:
    held, waiting = rows.add_job(team, **held_by(atlas, **facts)), rows.add_job(team)
    before = everything(team)

    said = held | {"attempt": attempt}
    got = short_turn(team.execute, atlas, [waiting["lane_id"]], finishes=said, wants=wants)

    assert (got["done"], got["job_id"], everything(team)) == (False, None, before)

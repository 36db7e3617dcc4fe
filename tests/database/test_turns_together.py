"""Turns of many agents in one go: each stands for itself, and nobody gets what only another may have."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pytest import mark, param

from agent_console.domain.ids import AgentId, JobId
from tests.database import rows
from tests.database.queue_counted import same_as_counted
from tests.database.team import Row, Team
from tests.database.turning import add_worker, held_by, now, short_turn, story, turn, turns_together
from tests.support.clusters import TemplateDatabase


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "turns_together") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


@pytest.fixture
def atlas(team: Team) -> Row:
    return add_worker(team, worker_id="atlas", max_concurrent_jobs=2)


@pytest.fixture
def beacon(team: Team) -> Row:
    return add_worker(team, worker_id="beacon", max_concurrent_jobs=3)


def add_jobs(team: Team, count: int, **facts: object) -> list[Row]:
    """In one lane, the first of them first."""
    lane = facts.pop("lane_id", None) or rows.lane_id(team)
    return [rows.add_job(team, lane_id=lane, **facts) for _ in range(count)]


def bound_to(team: Team, agent: Row, type: str = "report", **facts: object) -> Row:
    asks_for = {name: facts.get(name) for name in ("connector_id", "repository")}
    lane = rows.add_lane(team, bound_agent_id=agent["id"], job_type=type, **asks_for)
    return rows.add_job(team, lane_id=lane["id"], bound_agent_id=agent["id"], type=type, **facts)


def given(answers: list[Row]) -> list[tuple[object, object]]:
    """Turn and job, in the order in which it is told."""
    return [(answer["turn"], answer["job_id"]) for answer in answers]


def status(team: Team, *jobs: Row) -> list[object]:
    return [team.stored("jobs", job)["status"] for job in jobs]


def test_nobody_gets_a_second_while_another_has_none_or_more_than_there_is_room(
    team: Team, atlas: Row, beacon: Row
) -> None:
    jobs = add_jobs(team, 6)
    rows.add_job(team, **held_by(atlas))

    said = [turn(atlas, wants=5), turn(beacon, wants=5)]
    answers = turns_together(team.execute, team.team_id, said, [jobs[0]["lane_id"]])

    assert given(answers) == [(place, job["id"]) for place, job in zip((1, 2, 2, 2), jobs, strict=False)]
    assert status(team, *jobs[4:]) == ["queued"] * 2
    assert same_as_counted(team)


def test_where_there_are_too_few_the_first_gets_it_and_the_others_hear_that_too(
    team: Team, atlas: Row, beacon: Row
) -> None:
    (job,) = add_jobs(team, 1)

    answers = turns_together(team.execute, team.team_id, [turn(atlas), turn(beacon)], [job["lane_id"]])

    assert sorted(given(answers), key=str) == [(1, job["id"]), (2, None)]
    assert {answer["standing"] for answer in answers} == {"open"}


def test_whoever_may_take_nothing_takes_nothing_beside_one_who_may(team: Team, atlas: Row, beacon: Row) -> None:
    drained = add_worker(team, max_concurrent_jobs=2)
    team.execute("update agents set drained_at = now() where id = %s", drained["id"])
    deleted = add_worker(team)
    team.execute("update agents set deleted_at = now() where id = %s", deleted["id"])
    unheard: Row = {"id": AgentId.new()}
    jobs, bound = add_jobs(team, 9), bound_to(team, drained)
    bound_to(team, atlas)

    said = [
        turn(atlas),
        turn(drained),
        turn(deleted),
        turn(unheard),
        turn(beacon, key_hash="0" * 64),
        turn(beacon, wants=0),
    ]
    answers = turns_together(team.execute, team.team_id, said, [jobs[0]["lane_id"]])

    standing = {answer["turn"]: answer["standing"] for answer in answers}
    assert [standing[place] for place in range(1, 7)] == ["open", "drained", *["unknown"] * 3, "done"]
    assert [place for place, job in given(answers) if job is not None] == [1]
    assert status(team, bound, *jobs) == ["queued"] * 10


def test_each_hears_what_became_of_its_own_job_and_who_is_refused_gets_none(
    team: Team, atlas: Row, beacon: Row
) -> None:
    revoked, idle = add_worker(team), add_worker(team)
    held, lost, kept = (rows.add_job(team, **held_by(agent)) for agent in (atlas, beacon, revoked))
    team.execute("update agents set revoked_at = now(), revocation_reason = 'x' where id = %s", revoked["id"])
    jobs = add_jobs(team, 9)

    said = [turn(atlas, held), turn(beacon, lost, attempt=2), turn(revoked, kept), turn(idle)]
    answers = turns_together(team.execute, team.team_id, said, [jobs[0]["lane_id"]])

    told = {answer["turn"]: answer for answer in answers}
    assert [told[place]["finish"] for place in range(1, 5)] == ["ok", "not_owner", None, None]
    assert [told[place]["finish_status"] for place in range(1, 5)] == ["succeeded", "running", None, None]
    assert [told[place]["standing"] for place in range(1, 5)] == ["open", "done", "revoked", "open"]
    assert [told[place]["finish_lane"] for place in range(1, 3)] == [held["lane_id"], None]
    assert given(answers[2:]) == [(1, jobs[0]["id"]), (4, jobs[1]["id"])]
    assert status(team, held, lost, kept) == ["succeeded", "running", "running"]
    assert same_as_counted(team)


def test_who_only_ends_a_job_hears_where_it_was_or_why_not(team: Team, atlas: Row) -> None:
    held = rows.add_job(team, **held_by(atlas))

    (refused,) = turns_together(team.execute, team.team_id, [turn(atlas, held, wants=0, attempt=2)])
    (answer,) = turns_together(team.execute, team.team_id, [turn(atlas, held, wants=0)])

    assert (refused["standing"], refused["finish"], refused["finish_lane"]) == ("done", "not_owner", None)
    assert (answer["standing"], answer["finish"], answer["finish_lane"]) == ("done", "ok", held["lane_id"])


@mark.parametrize(("starts", "how"), [(True, "queued to assigned to running: "), (False, "queued to assigned: ")])
def test_the_story_of_a_job_tells_how_it_was_given(team: Team, atlas: Row, starts: bool, how: str) -> None:
    (job,) = add_jobs(team, 1)

    turns_together(team.execute, team.team_id, [turn(atlas, starts=starts)], [job["lane_id"]])

    (line,) = team.execute("select message from job_events where job_id = %s order by seq desc limit 1", job["id"])
    assert line["message"] == f"{how}atlas"


def test_whoever_asks_while_the_team_is_paused_hears_why(team: Team, atlas: Row) -> None:
    (job,) = add_jobs(team, 1)
    team.execute("update teams set paused_at = now(), pause_mode = 'drain', pause_reason = 'upgrade'")

    (paused,) = turns_together(team.execute, team.team_id, [turn(atlas)], [job["lane_id"]])
    team.execute("update teams set paused_at = null, pause_mode = null, pause_reason = null")
    (answer,) = turns_together(team.execute, team.team_id, [turn(atlas)], [job["lane_id"]])

    why = paused["pause"]
    assert isinstance(why, dict)
    assert (paused["standing"], why["mode"], why["reason"]) == ("paused", "drain", "upgrade")
    assert (answer["pause"], answer["job_id"]) == (None, job["id"])


def test_one_that_waits_is_found_however_many_have_ended_before_it(team: Team, atlas: Row) -> None:
    lane = rows.lane_id(team)
    team.execute(
        "insert into jobs (team_id, id, lane_id, type, payload, status, finished_at)"
        " select %s, new_id(), %s, 'report', '{}', 'succeeded', now() from generate_series(1, 17000)",
        *(team.team_id, lane),
    )
    (waiting,) = add_jobs(team, 1, lane_id=lane, priority=-1)

    answers = turns_together(team.execute, team.team_id, [turn(atlas)], [lane])

    assert given(answers) == [(1, waiting["id"])]


ENDED = {"status": "failed", "finished_at": now, "claimed_by": None, "lease_expires_at": None, "look_at": None}
REFUSED = (
    param({"id": None}, "succeeded", "missing", id="no such job"),
    param({"agent_id": rows.agent_id}, "succeeded", "not_owner", id="of another"),
    param({"attempt": 2}, "succeeded", "not_owner", id="another attempt"),
    param(ENDED, "succeeded", "ended", id="ended"),
    param(ENDED, "failed", "ended", id="ended as it is said to end now"),
    param({}, "cancelled", "not_asked", id="not asked to stop"),
    param({"status": "assigned", "started_at": None}, "succeeded", "not_started", id="not started"),
    param({"signed": True}, "succeeded", "apart", id="signed"),
    param({"collection_id": rows.collection_id}, "succeeded", "apart", id="of a collection"),
)


@mark.parametrize(("facts", "outcome", "why"), REFUSED)
def test_what_may_not_be_ended_stays_and_who_tries_hears_why(
    team: Team, atlas: Row, facts: Row, outcome: str, why: str
) -> None:
    rows.add_job(team, **held_by(atlas))
    missing = "id" in facts
    job = rows.add_job(team, **held_by(atlas, **({} if missing else facts)))
    before = team.execute("select * from jobs order by id")

    said = turn(atlas, {"id": JobId.new()} if missing else {"id": job["id"]}, outcome=outcome)
    (answer,) = turns_together(team.execute, team.team_id, [said])

    stands = None if missing else team.stored("jobs", {"id": job["id"]})["status"]
    assert (answer["standing"], answer["finish"], answer["finish_status"]) == ("done", why, stands)
    assert team.execute("select * from jobs order by id") == before


LATER = {"outcome": "retry", "error": "later"}
ENDS = (
    param({"outcome": "succeeded", "summary": "7 files"}, {}, "succeeded", ("info", ": 7 files"), id="well"),
    param({"outcome": "failed", "error": "broken"}, {}, "failed", ("error", ": broken"), id="badly"),
    param(LATER, {}, "queued", ("warn", ": later"), id="not yet"),
    param(LATER, {"max_attempts": 1}, "dead_letter", ("error", ": later"), id="for the last time"),
    param({"outcome": "cancelled"}, {"cancel_requested_at": now}, "cancelled", ("info", ""), id="as asked"),
    param({"outcome": "retry"}, {"cancel_requested_at": now}, "cancelled", ("info", ""), id="asked meanwhile"),
)


@mark.parametrize(("said", "facts", "becomes", "line"), ENDS)
def test_an_attempt_ends_as_its_agent_says(
    team: Team, atlas: Row, said: Row, facts: Row, becomes: str, line: tuple[str, str]
) -> None:
    rows.add_job(team, **held_by(atlas, max_attempts=1))
    job = rows.add_job(team, **held_by(atlas, progress={"percentage": 7}, error_code="old", **facts))
    rows.add_job(team, **held_by(atlas, max_attempts=1))

    ending = turn(atlas, job, wants=0, error_code="new", result={"files": 7}, **said)
    (answer,) = turns_together(team.execute, team.team_id, [ending])

    assert (answer["finish"], answer["finish_status"]) == ("ok", becomes)
    stored, again = team.stored("jobs", {"id": job["id"]}), becomes == "queued"
    assert (stored["claimed_by"], stored["lease_expires_at"]) == (None, None)
    assert [stored[name] for name in ("agent_id", "assigned_at", "progress", "attempt", "finished_at")] == (
        [None, None, None, 2, None] if again else [atlas["id"], now(team), {"percentage": 7}, 1, now(team)]
    )
    assert (stored["look_at"] is not None) is again
    assert stored["look_at"] == stored["next_attempt_at"]
    assert stored["result_summary"] == ("7 files" if becomes == "succeeded" else None)
    assert stored["error_code"] == (None if becomes == "succeeded" else "new")
    assert stored["error_message"] == (said.get("error") if becomes != "succeeded" else None)
    assert story(team, job) == [(line[0], f"running to {becomes}{line[1]}")]
    assert len(team.execute("select id from job_results")) == (becomes == "succeeded")
    assert same_as_counted(team)


def test_jobs_for_one_agent_alone_come_first_and_no_more_than_it_has_room_for(
    team: Team, atlas: Row, beacon: Row
) -> None:
    team.execute("update agents set max_concurrent_jobs = 1 where id = %s", beacon["id"])
    theirs, low = bound_to(team, beacon, "a"), bound_to(team, atlas, "a")
    best = bound_to(team, atlas, "b", priority=3)
    bound_to(team, atlas, "c", priority=9, status="scheduled", scheduled_for=rows.LATER)
    (better,) = add_jobs(team, 1, priority=9)

    first = turns_together(team.execute, team.team_id, [turn(atlas)], [better["lane_id"]])
    second = turns_together(team.execute, team.team_id, [turn(atlas), turn(beacon)], [better["lane_id"]])

    assert given(first) == [(1, best["id"])]
    assert given(second) == [(1, low["id"]), (2, theirs["id"])]
    assert status(team, better) == ["queued"]


def test_what_room_is_left_beside_jobs_for_it_alone_is_for_others(team: Team, atlas: Row) -> None:
    bound, jobs = bound_to(team, atlas), add_jobs(team, 3)

    answers = turns_together(team.execute, team.team_id, [turn(atlas, wants=9)], [jobs[0]["lane_id"]])

    assert given(answers) == [(1, bound["id"]), (1, jobs[0]["id"])]


@mark.parametrize(("types", "repositories"), [(["b"], None), (None, ["org/b"])], ids=str)
def test_a_job_for_it_alone_is_of_what_it_may_do(
    team: Team, atlas: Row, types: list[str] | None, repositories: list[str] | None
) -> None:
    bound_to(team, atlas, "a", priority=5, repository="org/a")
    allowed = bound_to(team, atlas, "b", repository="org/b")

    said = [turn(atlas, wants=2)]
    answers = turns_together(team.execute, team.team_id, said, types=types, repositories=repositories)

    assert given(answers) == [(1, allowed["id"])]


def test_a_job_for_it_alone_needs_credentials_of_its_own(team: Team, atlas: Row, beacon: Row) -> None:
    connector = rows.add_connector(team, credential_location="agent")["id"]
    job = bound_to(team, atlas, connector_id=connector)
    rows.add_agent_connector(team, agent_id=beacon["id"], connector_id=connector)
    rows.add_agent_connector(team, agent_id=atlas["id"])

    without = turns_together(team.execute, team.team_id, [turn(atlas)])
    rows.add_agent_connector(team, agent_id=atlas["id"], connector_id=connector)
    own = turns_together(team.execute, team.team_id, [turn(atlas)])

    assert (given(without), given(own)) == ([(1, None)], [(1, job["id"])])


def test_the_mark_of_what_it_does_is_its_own(team: Team, atlas: Row, beacon: Row) -> None:
    rows.add_agent_connector(team, agent_id=beacon["id"])
    team.execute("update agent_runtime set capabilities = '[\"gpu\"]' where agent_id = %s", beacon["id"])
    (job,) = add_jobs(team, 1)
    (mark_of,) = team.execute("select md5('[]') as mark")

    said = [turn(atlas, routing="0" * 32), turn(atlas, routing=mark_of["mark"])]
    answers = [turns_together(team.execute, team.team_id, [one], [job["lane_id"]])[0] for one in said]

    assert [(answer["standing"], answer["job_id"]) for answer in answers] == [("stale", None), ("open", job["id"])]


def test_a_lane_begins_where_the_caller_says(team: Team, atlas: Row) -> None:
    _, first, _ = add_jobs(team, 3)

    answers = turns_together(
        team.execute, team.team_id, [turn(atlas)], [first["lane_id"]], floors=[(0, first["id"])]
    )

    assert given(answers) == [(1, first["id"])]


@mark.parametrize(("seconds", "looked_at"), [(20, 20), (90, 60), (None, 60)])
def test_a_job_is_looked_at_when_the_deadline_of_its_own_run_is_over(
    team: Team, atlas: Row, seconds: int | None, looked_at: int
) -> None:
    rows.add_run(team, deadline_at=now)
    at = now(team)
    deadline = None if seconds is None else at + timedelta(seconds=seconds)
    run = rows.add_run(team, deadline_at=deadline)
    (job,) = add_jobs(team, 1, run_id=run["id"])

    turns_together(team.execute, team.team_id, [turn(atlas)], [job["lane_id"]])

    assert team.stored("jobs", job)["look_at"] == at + timedelta(seconds=looked_at)


def test_a_limit_that_holds_again_is_known_to_hold_for_that_agent_alone(
    team: Team, atlas: Row, beacon: Row
) -> None:
    team.execute("update agents set over_limit = true")
    held = [rows.add_job(team, **held_by(atlas)) for _ in range(3)]
    over = "select over_limit from agents where id = %s"

    answers = []
    for job in held[:2]:
        (answer,) = turns_together(team.execute, team.team_id, [turn(atlas, job)])
        answers.append((answer["standing"], *team.execute(over, atlas["id"])[0].values()))

    assert answers == [("full", False), ("open", False)]
    assert team.execute(over, beacon["id"]) == [{"over_limit": True}]


def test_a_limit_that_is_exceeded_stays_known_as_such(team: Team, atlas: Row) -> None:
    team.execute("update agents set over_limit = true")
    held = [rows.add_job(team, **held_by(atlas)) for _ in range(4)]

    (answer,) = turns_together(team.execute, team.team_id, [turn(atlas, held[0])])

    assert answer["standing"] == "full"
    assert team.execute("select over_limit from agents where id = %s", atlas["id"]) == [{"over_limit": True}]


def test_who_ends_one_and_wants_more_gets_no_more_than_there_is_room(team: Team, atlas: Row) -> None:
    held, _ = (rows.add_job(team, **held_by(atlas)) for _ in range(2))
    jobs = add_jobs(team, 3)

    answers = turns_together(team.execute, team.team_id, [turn(atlas, held, wants=3)], [jobs[0]["lane_id"]])

    assert given(answers) == [(1, jobs[0]["id"])]


def test_what_is_moved_after_turns_is_counted_as_ever(team: Team, atlas: Row) -> None:
    jobs = add_jobs(team, 2)
    turns_together(team.execute, team.team_id, [turn(atlas)], [jobs[0]["lane_id"]])

    team.execute(
        "update jobs set status = 'cancelled', finished_at = now(), look_at = null where status = 'queued'"
    )

    assert same_as_counted(team)
    assert short_turn(team.execute, atlas, [jobs[0]["lane_id"]])["done"] is False

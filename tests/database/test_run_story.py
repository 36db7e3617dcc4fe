"""What the database writes into the audit trail when the job of a run moves, and ids as it shows them."""

from collections.abc import Iterator

import pytest
from pytest import mark

from agent_console.domain.ids import AgentId, JobId, RunId
from tests.database import rows
from tests.database.job_states import AT, in_state
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "run_story") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def told(team: Team) -> list[Row]:
    return team.execute("select * from audit_log order by seq")


@mark.parametrize("kind", [RunId, JobId, AgentId])
def test_the_database_shows_an_id_as_everybody_else_does(team: Team, kind: type[RunId | JobId | AgentId]) -> None:
    ids = [kind.new() for _ in range(20)] + [kind(int=0), kind(int=2**128 - 1)]

    shown = [team.execute("select shown_id(%s, %s) as word", kind.prefix, one)[0]["word"] for one in ids]

    assert shown == [str(one) for one in ids]


HASH_FITS = """
    select event_hash = audit_event_hash(
               form, team_id, id, created_at, actor_type, actor_user_id, actor_agent_id, actor_label, action,
               resource_type, resource_id, thread_id, run_id, decision, reason, ip, user_agent, metadata) as fits
      from audit_log
"""


@mark.rule("R002-131")
def test_a_row_names_the_run_its_thread_and_its_job_and_its_hash_is_right(team: Team) -> None:
    run_id, job_id = RunId.new(), JobId.new()
    run = rows.add_run(team, id=run_id)
    job = rows.add_job(team, id=job_id, run_id=run_id, **in_state("assigned"))

    team.execute("update jobs set status = 'running', started_at = %s where id = %s", AT, job_id)

    (row,) = told(team)
    assert (row["action"], row["actor_type"], row["actor_agent_id"]) == ("run.start", "agent", job["agent_id"])
    assert (row["resource_type"], row["resource_id"]) == ("run", str(run_id))
    assert (row["run_id"], row["thread_id"]) == (run["id"], run["thread_id"])
    assert row["metadata"] == {"job_id": str(job_id), "attempt": 1}
    assert team.execute(HASH_FITS) == [{"fits": True}]


def test_a_run_that_has_ended_tells_nothing_more(team: Team) -> None:
    run = rows.add_run(team, status="timeout", ended_at=AT)
    job = rows.add_job(team, run_id=run["id"], **in_state("queued"))

    team.execute(
        "update jobs set status = 'cancelled', finished_at = now(), look_at = null, cancel_requested_at = now()"
        " where id = %s",
        job["id"],
    )

    assert told(team) == []


def test_a_job_that_is_no_runs_is_told_by_others(team: Team) -> None:
    job = rows.add_job(team, **in_state("assigned"))

    team.execute("update jobs set status = 'running', started_at = %s where id = %s", AT, job["id"])

    assert told(team) == []

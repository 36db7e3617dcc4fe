"""The proofs would see it: whatever may never happen is made to happen by hand, and each of them is found."""

from pathlib import Path

import psycopg
import pytest

from agent_console.database.address import unreachable
from agent_console.domain.ids import ApprovalId, JobId, MessageId
from tests.faults.invariants import looked_at_in
from tests.faults.life import Told
from tests.queue.crew import EMPTY
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet

# Claimed twice in a row, ended twice, with two results.
JOB = """
    with lane as (
        insert into lanes (team_id, id, key) values (%(team)s, new_id(), repeat('a', 64)) returning id
    ), job as (
        insert into jobs (team_id, id, lane_id, type, payload)
        select %(team)s, new_id(), id, 'work', '{}' from lane
        returning id
    ), moves as (
        insert into job_events (team_id, id, job_id, message, payload)
        select %(team)s, new_id(), job.id, 'moved', m.payload
          from job, (values (1, '{"from": "queued", "to": "running"}'::jsonb),
                            (2, '{"from": "queued", "to": "running"}'), (3, '{"from": "running", "to": "failed"}'),
                            (4, '{"from": "failed", "to": "succeeded"}')) as m (place, payload)
         order by place
    )
    insert into job_results (team_id, id, job_id, attempt, created_by_user_id)
    select %(team)s, new_id(), job.id, n, %(user)s from job, generate_series(1, 2) as n
"""
APPROVAL = """
    insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version, trace_id,
                           envelope, digest, expires_at, state, decided_by_user_id, decided_at)
    values (%(team)s, %(id)s, %(thread)s, %(agent)s, %(agent)s, new_id(), 1, new_id(), '{}', repeat('0', 64),
            now(), 'approved', %(user)s, now())
"""
DECIDED = """
    select append_audit(%(team)s, 'human', %(user)s, null, 'Ana Costa', 'approval.' || what, 'approval', 'apr_1')
      from unnest(array['approve', 'reject']) as what
"""


def break_everything(fleet: Fleet, approval_id: ApprovalId) -> None:
    facts = {
        "team": fleet.team_id(),
        "user": fleet.user_id("ana@example.com"),
        "agent": fleet.agent_id("atlas"),
        "thread": add_thread(fleet),
        "id": approval_id,
    }
    with psycopg.connect(fleet.administration, autocommit=True) as connection:
        for statement in (JOB, APPROVAL, DECIDED):
            connection.execute(statement, facts)
        connection.execute("update queue_moves set jobs = jobs + 1")


def test_everything_that_may_never_happen_is_found(fleet: Fleet, tmp_path: Path) -> None:
    fleet.execute(EMPTY)
    decided = ApprovalId.new()
    break_everything(fleet, decided)
    (tmp_path / "journal").write_text("job_1 1 atlas\njob_1 1 beacon\njob_2 1 atlas\n")
    told = Told(
        jobs=[JobId.new()],
        messages=[MessageId.new()],
        asked=[ApprovalId.new()],
        decided={decided: ["approved", "rejected"]},
    )

    found = looked_at_in(fleet, told, tmp_path / "journal")

    assert set(found.wrong.values()) == {1}, found.wrong


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        (psycopg.errors.DiskFull("could not extend file: No space left on device"), "Make room on the disk"),
        (psycopg.OperationalError("FATAL:  sorry, too many clients already"), "max_connections"),
        (psycopg.OperationalError("FATAL:  unsupported startup parameter: options"), "listen_dsn"),
    ],
)
def test_what_the_database_complains_of_is_told_with_what_to_do(complaint: psycopg.Error, advice: str) -> None:
    told = unreachable("host=db dbname=fleet", complaint)

    assert advice in told.hint

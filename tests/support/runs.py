"""Runs, as far as the queue has to do with them."""

from agent_console.domain.ids import JobId, RunId, ThreadId
from tests.support.fleet import Fleet


def belongs_to_a_run(fleet: Fleet, job_id: JobId) -> None:
    """Make it the job of a run that asked atlas."""
    team_id, thread_id, run_id, ana = (
        fleet.team_id(),
        ThreadId.new(),
        RunId.new(),
        fleet.user_id("ana@example.com"),
    )
    fleet.execute(
        "insert into threads (team_id, id, title, created_by_user_id) values (%s, %s, 'launch', %s)",
        *(team_id, thread_id, ana),
    )
    fleet.execute(
        "insert into runs (team_id, id, thread_id, target_agent_id, requested_by_type, requested_by_user_id)"
        " values (%s, %s, %s, %s, 'human', %s)",
        *(team_id, run_id, thread_id, fleet.agent_id("atlas"), ana),
    )
    fleet.execute("update jobs set run_id = %s where id = %s", run_id, job_id)

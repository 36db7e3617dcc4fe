"""What is kept of an act on jobs: the last line in a job's story, and the audit trail."""

from agent_console.domain.ids import JobId
from tests.support.fleet import Fleet


def last_line(fleet: Fleet, job_id: JobId) -> tuple[object, ...]:
    """Its words, its facts, and whose it is."""
    return fleet.execute(
        "select e.message, e.payload, u.email from job_events e"
        " left join users u on u.team_id = e.team_id and u.id = e.created_by_user_id"
        " where e.job_id = %s order by e.seq desc limit 1",
        job_id,
    )[0]


def lines(fleet: Fleet) -> object:
    return fleet.one("select count(*) from job_events")


def acts(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.execute("select action, resource_id, metadata, reason from audit_log order by seq")

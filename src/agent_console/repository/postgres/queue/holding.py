"""What an agent holds: the answer to a claim can get lost, and the job is the agent's all the same."""

from sqlalchemy import func, select

from agent_console.database.tables import jobs
from agent_console.domain.errors import Forbidden
from agent_console.domain.records import Nothing
from agent_console.domain.states import JobStatus
from agent_console.domain.working import JobHeld, JobsHeld
from agent_console.repository.operations.working import CLAIMS_HELD
from agent_console.repository.postgres.work import Work, answers

HELD = tuple(jobs.c[name] for name in JobHeld.model_fields)


@answers(CLAIMS_HELD)
async def jobs_held(work: Work, asked: Nothing) -> JobsHeld:
    """By jobs_held_idx. A job whose lease is over is nobody's any more."""
    if work.caller.agent_id is None:
        raise Forbidden("Only an agent holds jobs.", hint="Use the agent's own key.")
    wanted = (
        select(*HELD)
        .where(
            jobs.c.team_id == work.caller.team_id,
            jobs.c.agent_id == work.caller.agent_id,
            jobs.c.status.in_((JobStatus.ASSIGNED.value, JobStatus.RUNNING.value)),
            jobs.c.lease_expires_at > func.now(),
        )
        .order_by(jobs.c.assigned_at, jobs.c.id)
    )
    rows = (await work.connection.execute(wanted)).all()
    return JobsHeld(jobs=tuple(JobHeld.model_validate(row._mapping) for row in rows))

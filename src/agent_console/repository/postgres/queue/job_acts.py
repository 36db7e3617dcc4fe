"""What an operator does to one job."""

from agent_console.domain.audit import AuditEvent
from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobCancelling, JobRebinding, JobReprioritising, JobRetrying
from agent_console.domain.jobs import Job
from agent_console.repository.operations.job_acts import (
    JOB_CANCELLED,
    JOB_REBOUND,
    JOB_REPRIORITISED,
    JOB_RETRIED,
    JOBS_CANCEL,
    JOBS_REBIND,
    JOBS_REPRIORITISE,
    JOBS_RETRY,
)
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.queue.cancelling import Cancel
from agent_console.repository.postgres.queue.job_changes import Act, jobs_named, no_job
from agent_console.repository.postgres.queue.jobs import job_of
from agent_console.repository.postgres.queue.rebinding import Rebind, require_agent, require_free_collection
from agent_console.repository.postgres.queue.reprioritising import Reprioritise
from agent_console.repository.postgres.queue.retrying import Retry
from agent_console.repository.postgres.registry.connectors import refused_field
from agent_console.repository.postgres.work import Work, answers


@answers(JOBS_CANCEL)
async def cancel_job(work: Work, asked: JobCancelling) -> Job:
    return await _do_one(work, asked.job_id, Cancel(asked.reason), JOB_CANCELLED)


@answers(JOBS_RETRY)
async def retry_job(work: Work, asked: JobRetrying) -> Job:
    return await _do_one(work, asked.job_id, Retry(), JOB_RETRIED)


@answers(JOBS_REPRIORITISE)
async def reprioritise_job(work: Work, asked: JobReprioritising) -> Job:
    return await _do_one(work, asked.job_id, Reprioritise(asked.priority), JOB_REPRIORITISED)


@answers(JOBS_REBIND)
async def rebind_job(work: Work, asked: JobRebinding) -> Job:
    if (asked.agent_id is None) is not asked.unbind:
        raise refused_field("agent_id", "or unbind has to be given, and not both")
    await require_free_collection(work, asked.job_id)
    if asked.agent_id is not None:
        await require_agent(work, asked.agent_id)
    return await _do_one(work, asked.job_id, Rebind(asked.agent_id), JOB_REBOUND)


async def _do_one(work: Work, job_id: JobId, act: Act, action: str) -> Job:
    """Refused, done with its audit row, or so already: then nothing is written."""
    rows = await jobs_named(work, [job_id], lock=True)
    if not rows:
        raise no_job(job_id)
    found = await act.sort(work, rows)
    if found.refused:
        raise found.refused[0][1]
    if not found.ready:
        return await job_of(work, job_id)
    (done,) = await act.do(work, found.ready)
    event = AuditEvent(action, "job", str(job_id), metadata=done.facts, reason=act.reason)
    await audit.append(work, event, rows[0].at)
    return await job_of(work, done.shown)

"""What an agent tells of a job it holds."""

from typing import TYPE_CHECKING, Any

from agent_console.domain.ids import JobId
from agent_console.domain.states import JobStatus
from agent_console.domain.working import HeldJob, JobLines, JobProgress, JobRenewal, JobStart, Lease, Reported
from agent_console.repository.operations.working import JOBS_LOG, JOBS_PROGRESS, JOBS_RENEW, JOBS_START
from agent_console.repository.postgres.acting import acting_agent
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.queue.held_jobs import Report
from agent_console.repository.postgres.queue.refusing import refusal, require_lease

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository


@answers_at_own_pace(JOBS_START)
async def start_job(repository: "PostgresRepository", said: JobStart) -> Reported:
    report = await _report(repository, JOBS_START.name, said)
    report.starts = True
    return _reported(said.job_id, await repository.backend.queue.held.report(report))


@answers_at_own_pace(JOBS_RENEW)
async def renew_lease(repository: "PostgresRepository", said: JobRenewal) -> Lease:
    report = await _report(repository, JOBS_RENEW.name, said)
    queue = repository.backend.queue
    if said.lease_seconds is not None:
        require_lease(said.lease_seconds, await queue.book.lease_max(report.acting.team_id, said.lease_seconds))
    report.renews, report.lease = True, said.lease_seconds
    row = _accepted(said.job_id, await queue.held.report(report))
    return Lease(job_id=said.job_id, lease_expires_at=row.lease_expires_at, cancel_requested=row.cancelling)


@answers_at_own_pace(JOBS_PROGRESS)
async def tell_progress(repository: "PostgresRepository", said: JobProgress) -> Reported:
    report = await _report(repository, JOBS_PROGRESS.name, said)
    report.starts, report.progress = True, said.shown
    return _reported(said.job_id, await repository.backend.queue.held.progress(report))


@answers_at_own_pace(JOBS_LOG)
async def add_lines(repository: "PostgresRepository", said: JobLines) -> Reported:
    report = await _report(repository, JOBS_LOG.name, said)
    report.starts = True
    report.events = [line.model_dump(mode="json") for line in said.events]
    return _reported(said.job_id, await repository.backend.queue.held.report(report))


async def _report(repository: "PostgresRepository", operation: str, said: HeldJob) -> Report:
    return Report(await acting_agent(repository, operation), said.job_id, said.attempt)


def _accepted(job_id: JobId, row: Any) -> Any:
    if row.verdict != "ok":
        raise refusal(row.verdict, row.status, job_id)
    return row


def _reported(job_id: JobId, row: Any) -> Reported:
    row = _accepted(job_id, row)
    return Reported(job_id=job_id, status=JobStatus(row.status), cancel_requested=row.cancelling)

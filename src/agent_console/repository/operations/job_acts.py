"""What an operator does to jobs, and the story of each."""

from agent_console.domain.audit import audit_action
from agent_console.domain.job_acts import (
    JobBatch,
    JobCancelling,
    JobRebinding,
    JobReprioritising,
    JobRetrying,
    JobsCancelling,
    JobsReprioritising,
    JobsRetrying,
    can_be_cancelled,
    can_be_moved,
    can_be_retried,
)
from agent_console.domain.job_events import JobEvent, JobEventQuery
from agent_console.domain.jobs import Job
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

_COUNTS = ("done", "unchanged", "refused")
_WHICH = ("ids", "status", "type", "agent_id", "collection_id", "tool", "filter")

JOB_CANCELLED = audit_action("job.cancel", "from", "to")
JOB_RETRIED = audit_action("job.retry", "new_job_id")
JOB_REPRIORITISED = audit_action("job.reprioritise", "from", "to")
JOB_REBOUND = audit_action("job.rebind", "from_agent_id", "to_agent_id")
JOBS_CANCELLED = audit_action("job.cancel_many", *_COUNTS, *_WHICH)
JOBS_RETRIED = audit_action("job.retry_many", *_COUNTS, *_WHICH)
JOBS_REPRIORITISED = audit_action("job.reprioritise_many", *_COUNTS, *_WHICH, "priority")

JOBS_CANCEL = Operation(
    name="jobs.cancel",
    summary="Cancel a job: at once while it waits, else its agent is asked to stop.",
    verb=Verb.POST,
    path="/v1/jobs/{job_id}/cancel",
    request=JobCancelling,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit=JOB_CANCELLED,
    fits=can_be_cancelled,
    danger=True,
)
JOBS_RETRY = Operation(
    name="jobs.retry",
    summary="Try a failed, dead-lettered or cancelled job again, as a new job.",
    verb=Verb.POST,
    path="/v1/jobs/{job_id}/retry",
    request=JobRetrying,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit=JOB_RETRIED,
    fits=can_be_retried,
    created=True,
)
JOBS_REPRIORITISE = Operation(
    name="jobs.reprioritise",
    summary="Move a waiting job forward or back in the queue.",
    verb=Verb.PUT,
    path="/v1/jobs/{job_id}/priority",
    request=JobReprioritising,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit=JOB_REPRIORITISED,
    fits=can_be_moved,
)
JOBS_REBIND = Operation(
    name="jobs.rebind",
    summary="Give a waiting job to one agent alone, or to any that can do it.",
    verb=Verb.PUT,
    path="/v1/jobs/{job_id}/binding",
    request=JobRebinding,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit=JOB_REBOUND,
    fits=can_be_moved,
)
JOBS_CANCEL_MANY = Operation(
    name="jobs.cancel_many",
    summary="Cancel many jobs, newest first: these ids, or all that match.",
    verb=Verb.POST,
    path="/v1/jobs/cancel",
    request=JobsCancelling,
    answer=JobBatch,
    permission=Permission.WORK_QUEUE,
    audit=JOBS_CANCELLED,
    danger=True,
    batched=True,
)
JOBS_RETRY_MANY = Operation(
    name="jobs.retry_many",
    summary="Try many jobs again that ended badly, newest first: these ids, or all that match.",
    verb=Verb.POST,
    path="/v1/jobs/retry",
    request=JobsRetrying,
    answer=JobBatch,
    permission=Permission.WORK_QUEUE,
    audit=JOBS_RETRIED,
    danger=True,
    batched=True,
)
JOBS_REPRIORITISE_MANY = Operation(
    name="jobs.reprioritise_many",
    summary="Give many waiting jobs another priority, newest first: these ids, or all that match.",
    verb=Verb.POST,
    path="/v1/jobs/priority",
    request=JobsReprioritising,
    answer=JobBatch,
    permission=Permission.WORK_QUEUE,
    audit=JOBS_REPRIORITISED,
    danger=True,
    batched=True,
)
JOBS_EVENTS = Operation(
    name="jobs.events",
    summary="The story of a job, oldest first, or newest first.",
    verb=Verb.GET,
    path="/v1/jobs/{job_id}/events",
    request=JobEventQuery,
    answer=Page[JobEvent],
    permission=Permission.SEE_FLEET,
)

JOB_ACTS: tuple[AnyOperation, ...] = (
    JOBS_CANCEL,
    JOBS_RETRY,
    JOBS_REPRIORITISE,
    JOBS_REBIND,
    JOBS_CANCEL_MANY,
    JOBS_RETRY_MANY,
    JOBS_REPRIORITISE_MANY,
    JOBS_EVENTS,
)

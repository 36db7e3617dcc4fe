"""Putting many jobs into the queue at once."""

from agent_console.domain.audit import audit_action
from agent_console.domain.many_jobs import JobsMade, NewJobs
from agent_console.domain.permissions import Permission
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

JOBS_CREATED = audit_action("job.create_many", "made", "repeated", "types")

JOBS_CREATE_MANY = Operation(
    name="jobs.create_many",
    summary="Put up to 1,000 jobs into the queue, all of them or none.",
    verb=Verb.POST,
    path="/v1/jobs/many",
    request=NewJobs,
    answer=JobsMade,
    permission=Permission.WORK_QUEUE,
    audit=JOBS_CREATED,
    created=True,
)

ENQUEUEING: tuple[AnyOperation, ...] = (JOBS_CREATE_MANY,)

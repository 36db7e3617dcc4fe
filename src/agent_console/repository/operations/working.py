"""What agents do with jobs. The story of each job tells these; they are no acts for the audit trail."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing
from agent_console.domain.working import (
    WAIT_SECONDS,
    CancelAcknowledged,
    Claim,
    Claimed,
    Ended,
    JobDone,
    JobFailed,
    JobLines,
    JobProgress,
    JobRenewal,
    JobsHeld,
    JobStart,
    Lease,
    Reported,
)
from agent_console.repository.operations.declared import Answered, AnyOperation, Asked, Operation, Verb

# Told when an agent asks in the name of another worker.
WORKER_REFUSED = audit_action("worker.refused", "operation", "asked_as")

CLAIMS_TAKE = Operation(
    name="claims.take",
    summary="Take the best waiting jobs that you may and can do; without one it says why.",
    verb=Verb.POST,
    path="/v1/claims",
    request=Claim,
    answer=Claimed,
    permission=Permission.ACT_AS_AGENT,
    writes=True,
    waits_seconds=WAIT_SECONDS,
    per_minute=120,
)

CLAIMS_HELD = Operation(
    name="claims.held",
    summary="The jobs you hold, also those of a claim whose answer was lost.",
    verb=Verb.GET,
    path="/v1/claims",
    request=Nothing,
    answer=JobsHeld,
    permission=Permission.ACT_AS_AGENT,
)


def _report(name: str, summary: str, request: type[Asked], answer: type[Answered]) -> Operation[Asked, Answered]:
    return Operation(
        name=f"jobs.{name}",
        summary=summary,
        verb=Verb.POST,
        path=f"/v1/jobs/{{job_id}}/{name}",
        request=request,
        answer=answer,
        permission=Permission.ACT_AS_AGENT,
        writes=True,
    )


JOBS_START = _report("start", "Say that you begin: from assigned to running.", JobStart, Reported)
JOBS_RENEW = _report("renew", "Keep a job a while longer: extends its lease and nothing else.", JobRenewal, Lease)
JOBS_PROGRESS = _report("progress", "Say how far you are.", JobProgress, Reported)
JOBS_LOG = _report("log", "Add lines to the story of a job.", JobLines, Reported)
JOBS_COMPLETE = _report("complete", "Say that it is done, and claim the next.", JobDone, Ended)
JOBS_FAIL = _report("fail", "Say that it went wrong; it is tried again if that makes sense.", JobFailed, Ended)
JOBS_ACKNOWLEDGE = _report(
    "acknowledge", "Say that you stopped a job you were asked to cancel.", CancelAcknowledged, Ended
)

NOUNS = {"claims": "Taking jobs, as an agent does."}

WORKING: tuple[AnyOperation, ...] = (
    CLAIMS_TAKE,
    CLAIMS_HELD,
    JOBS_START,
    JOBS_RENEW,
    JOBS_PROGRESS,
    JOBS_LOG,
    JOBS_COMPLETE,
    JOBS_FAIL,
    JOBS_ACKNOWLEDGE,
)

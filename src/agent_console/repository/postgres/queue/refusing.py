"""What an agent is told when its turn or its report changed nothing."""

from agent_console.domain.errors import Conflict, ConsoleError, Invalid, NotOwner
from agent_console.domain.ids import JobId
from agent_console.repository.postgres.identify import refused_credential, revoked_agent
from agent_console.repository.postgres.queue.job_changes import no_job
from agent_console.repository.postgres.queue.turns import Taken

LEASE_FIELD = "lease_seconds"


def require_standing(taken: Taken) -> None:
    if taken.standing == "unknown":
        raise refused_credential()
    if taken.standing == "revoked":
        raise revoked_agent()


def require_lease(seconds: int, longest: int, field: str = LEASE_FIELD) -> None:
    """A claim and a renewal are bounded by the same setting of the team."""
    if seconds > longest:
        raise Invalid(
            f"A lease of {seconds} s is longer than this team allows.",
            hint=f"Ask for at most {longest} s and renew it while you work.",
            details={"fields": [{"field": field, "problem": f"must be at most {longest}"}]},
        )


def refusal(verdict: str, status: str | None, job_id: JobId) -> ConsoleError:
    """What to say of a report that changed nothing."""
    match verdict:
        case "unknown":
            return refused_credential()
        case "revoked":
            return revoked_agent()
        case "missing":
            return no_job(job_id)
        case "not_owner":
            return NotOwner(
                f"Job {job_id} is not yours, or this attempt of it is over.",
                hint="Stop working on it; what you report now changes nothing.",
                details={"job_id": str(job_id), "reason": "not_owner"},
            )
        case "not_asked":
            return Conflict(
                f"Nobody asked to cancel job {job_id}.",
                hint="Complete it or let it fail.",
                details={"job_id": str(job_id), "state": status},
            )
        case "not_started":
            return Conflict(
                f"Job {job_id} is assigned and can't become succeeded.",
                hint="Start it first.",
                details={"job_id": str(job_id), "state": status},
            )
        case "ended":
            return Conflict(
                f"Job {job_id} is {status}, which is final.",
                hint="Look at what became of it: agent-console jobs get job_…",
                details={"job_id": str(job_id), "state": status},
            )
        case _:
            return Conflict(f"Job {job_id} was being changed by somebody else.", hint="Try again.")

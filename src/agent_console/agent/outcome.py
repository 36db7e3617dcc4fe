"""How the work on a job ends, and how that is told to the server."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from agent_console.agent.storable import shortened, storable_facts, storable_text
from agent_console.domain.delegation import canonical
from agent_console.domain.redact import redact, redact_json
from agent_console.domain.working import CODE_LENGTH, TEXT_LENGTH, Assignment, ClaimWanted, JobDone, JobFailed

if TYPE_CHECKING:
    from agent_console.agent.job import JobContext

ERROR_LENGTH = 4_000


@dataclass(frozen=True)
class Done:
    """The work is done: a sentence for people, a JSON object for programs, or neither."""

    summary: str | None = None
    result: dict[str, JsonValue] | None = None


class JobFailure(Exception):
    """Raise it in a handler to let the job fail; a retryable one is tried again as the server sees fit."""

    def __init__(self, message: str, *, code: str | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        # Whatever they are: nothing that is said about a failure may keep it from being told.
        self.message = str(message)
        self.code = None if code is None else str(code)
        self.retryable = bool(retryable)


Returned: TypeAlias = Done | dict[str, JsonValue] | str | None
Handler: TypeAlias = "Callable[[JobContext], Awaitable[Returned]]"
Outcome: TypeAlias = Done | JobFailure


def outcome_of(returned: object) -> Done:
    """Nobody proves what a handler returns. Raises JobFailure for what is no result."""
    match returned:
        case Done():
            return returned
        case dict():
            return Done(result=returned)
        case str():
            return Done(summary=returned)
        case None:
            return Done()
        case _:
            raise refused(
                f"the handler returned a value of type {type(returned).__name__}, and a result is a JSON object, "
                "a sentence or None"
            )


def refused(why: str) -> JobFailure:
    """Another try would bring the same."""
    return JobFailure(f"The result was refused: {why}", code="result_refused", retryable=False)


def failure_of(error: Exception) -> JobFailure:
    """What a handler did not expect may go better another time."""
    return JobFailure(f"{type(error).__name__}: {error}", code="handler_error", retryable=True)


def done_request(assignment: Assignment, done: Done, claim_next: ClaimWanted | None) -> JobDone:
    """Raises NotJson or ValidationError for a result that can't be told."""
    result = None if done.result is None else storable_facts(redact_json(storable_facts(done.result)))
    request = JobDone(
        job_id=assignment.id,
        attempt=assignment.attempt,
        result_summary=None if done.summary is None else _told(done.summary, TEXT_LENGTH),
        result=result,
        claim_next=claim_next,
    )
    if assignment.signing_secret is None:
        return request
    return request.model_copy(update={"signature": _signature(assignment.signing_secret, request.result)})


def failed_request(assignment: Assignment, failure: JobFailure, claim_next: ClaimWanted | None) -> JobFailed:
    return JobFailed(
        job_id=assignment.id,
        attempt=assignment.attempt,
        error=_told(failure.message, ERROR_LENGTH)
        if failure.message.strip()
        else "It failed and did not say why.",
        error_code=_code(failure.code),
        retryable=failure.retryable,
        claim_next=claim_next,
    )


def _code(code: str | None) -> str | None:
    """Whatever a handler called it: a name that can't be kept must not keep the end of the job from being told."""
    return shortened(storable_text(code), CODE_LENGTH) if code and code.strip() else None


def _told(text: str, length: int) -> str:
    """Without secrets before it is shortened: half a secret may not look like one."""
    return shortened(redact(storable_text(str(text))), length)


def _signature(secret: str, result: dict[str, JsonValue] | None) -> str:
    return hmac.new(secret.encode(), canonical(result or {}), hashlib.sha256).hexdigest()

"""Every state there is; the moves of those that have a choice of them, and what refuses any other."""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import TypeVar

from agent_console.domain.errors import Conflict


class JobStatus(StrEnum):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    ASSIGNED = "assigned"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELLED = "cancelled"

    @classmethod
    def _missing_(cls, value: object) -> "JobStatus | None":
        return cls.CANCELLED if value == "canceled" else None


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"

    @classmethod
    def _missing_(cls, value: object) -> "RunStatus | None":
        return cls.CANCELLED if value == "canceled" else None


class ApprovalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


class Presence(StrEnum):
    UNKNOWN = "unknown"
    ONLINE = "online"
    OFFLINE = "offline"
    ERROR = "error"
    REVOKED = "revoked"


class Lifecycle(IntEnum):
    """Stored as one byte, so the numbers are part of the contract."""

    PROVISIONING = 1
    RUNNING = 2
    IDLE = 3
    HIBERNATING = 4
    STOPPING = 5
    STOPPED = 6
    ERROR = 7


class SessionStatus(IntEnum):
    ACTIVE = 1
    CLOSED = 2


State = TypeVar("State", JobStatus, RunStatus, Lifecycle)
Moves = Mapping[State, frozenset[State]]

_J, _R, _L = JobStatus, RunStatus, Lifecycle

JOB_MOVES: Moves[JobStatus] = {
    _J.SCHEDULED: frozenset({_J.ASSIGNED, _J.CANCELLED}),
    _J.QUEUED: frozenset({_J.ASSIGNED, _J.CANCELLED}),
    _J.ASSIGNED: frozenset({_J.RUNNING, _J.QUEUED, _J.DEAD_LETTER, _J.CANCELLED, _J.FAILED}),
    _J.RUNNING: frozenset({_J.RUNNING, _J.SUCCEEDED, _J.FAILED, _J.QUEUED, _J.DEAD_LETTER, _J.CANCELLED}),
    _J.SUCCEEDED: frozenset(),
    _J.FAILED: frozenset(),
    _J.DEAD_LETTER: frozenset(),
    _J.CANCELLED: frozenset(),
}

RUN_MOVES: Moves[RunStatus] = {
    # Failed without having run: its job was taken and lost, again and again, before anybody began.
    _R.QUEUED: frozenset({_R.RUNNING, _R.FAILED, _R.CANCELLED, _R.TIMEOUT}),
    _R.RUNNING: frozenset({_R.SUCCEEDED, _R.FAILED, _R.CANCELLED, _R.TIMEOUT}),
    _R.SUCCEEDED: frozenset(),
    _R.FAILED: frozenset(),
    _R.CANCELLED: frozenset(),
    _R.TIMEOUT: frozenset(),
}

LIFECYCLE_MOVES: Moves[Lifecycle] = {
    _L.PROVISIONING: frozenset({_L.RUNNING, _L.ERROR}),
    _L.RUNNING: frozenset({_L.IDLE, _L.HIBERNATING, _L.STOPPING, _L.ERROR}),
    _L.IDLE: frozenset({_L.RUNNING, _L.HIBERNATING, _L.STOPPING, _L.ERROR}),
    _L.HIBERNATING: frozenset({_L.RUNNING, _L.PROVISIONING, _L.STOPPING, _L.ERROR}),
    _L.STOPPING: frozenset({_L.STOPPED, _L.ERROR}),
    _L.STOPPED: frozenset({_L.PROVISIONING}),
    _L.ERROR: frozenset({_L.STOPPED, _L.PROVISIONING}),
}

JOB_FINAL = frozenset(status for status, onward in JOB_MOVES.items() if not onward)
JOB_HELD = frozenset({JobStatus.ASSIGNED, JobStatus.RUNNING})


def is_final(moves: Moves[State], state: State) -> bool:
    return not moves[state]


def require_move(moves: Moves[State], what: str, now: State, wanted: State) -> None:
    """Refuse a move that the table does not hold; the caller has changed nothing yet."""
    if wanted in moves[now]:
        return
    onward = ", ".join(sorted(state.name.lower() for state in moves[now]))
    raise Conflict(
        f"{what} is {now.name.lower()} and can't become {wanted.name.lower()}.",
        hint=f"From here it can become: {onward}." if onward else "This state is final.",
        details={"state": now.name.lower(), "wanted": wanted.name.lower()},
    )

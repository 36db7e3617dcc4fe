"""The form of an audit row: which actions exist, what each may carry, and the bytes its hash is taken over.

No message content and no secrets: each action lists the only metadata keys it may write. The hash is taken
over a stored, versioned form of plain values with their lengths, never over the text of a timestamp or JSON.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision

FORM = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Every action there is, with the metadata keys it may carry.
ACTIONS: dict[str, frozenset[str]] = {}


def audit_action(name: str, *facts: str) -> str:
    """Register an action where it is declared; `facts` are the only metadata keys it may ever carry."""
    if name in ACTIONS:
        raise ValueError(f"{name} is registered already")
    ACTIONS[name] = frozenset(facts)
    return name


@dataclass(frozen=True)
class AuditEvent:
    """One act, before it is written."""

    action: str
    resource_type: str
    resource_id: str
    metadata: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    decision: Decision | None = None
    reason: str | None = None
    thread_id: ThreadId | None = None
    run_id: RunId | None = None

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"{self.action} is not a registered audit action")
        if strange := set(self.metadata) - ACTIONS[self.action]:
            raise ValueError(f"{self.action} may not carry {', '.join(sorted(strange))}")


@dataclass(frozen=True)
class Actor:
    """Who did it: a person, an agent, or the system itself, which has neither id."""

    type: ActorType
    user_id: UserId | None
    label: str
    agent_id: AgentId | None = None


SYSTEM = Actor(ActorType.SYSTEM, None, "agent-console")


def _piece(value: str | int | bool | None) -> bytes:
    """A value with its kind and length, so that no two different rows give the same bytes."""
    match value:
        case None:
            return b"n"
        case bool():
            return b"t" if value else b"f"
        case int():
            body = str(value).encode()
            return b"i%d:%b" % (len(body), body)
        case str():
            body = value.encode("utf-8", "surrogatepass")
            return b"s%d:%b" % (len(body), body)


def event_hash(team_id: TeamId, audit_id: AuditId, actor: Actor, event: AuditEvent, at: datetime) -> bytes:
    """SHA-256 over form 1."""
    microseconds = (at - _EPOCH) // (at - _EPOCH).resolution
    values: list[str | int | bool | None] = [
        FORM,
        str(team_id),
        str(audit_id),
        microseconds,
        actor.type.value,
        None if actor.user_id is None else str(actor.user_id),
        None if actor.agent_id is None else str(actor.agent_id),
        actor.label,
        event.action,
        event.resource_type,
        event.resource_id,
        None if event.thread_id is None else str(event.thread_id),
        None if event.run_id is None else str(event.run_id),
        None if event.decision is None else event.decision.value,
        event.reason,
    ]
    for name in sorted(event.metadata):
        values += [name, event.metadata[name]]
    return hashlib.sha256(b"".join(map(_piece, values))).digest()

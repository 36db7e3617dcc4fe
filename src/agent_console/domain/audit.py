"""The form of an audit row: which actions exist, what each may carry, and the bytes its hash is taken over.

No message content and no secrets: each action lists the only metadata keys it may write. The hash is taken
over a stored, versioned form of plain values with their types and lengths, never over the text of a timestamp
or JSON. The form is the binary record that PostgreSQL itself sends for these values, so that the database can
take the same hash of a million rows where they lie.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias
from uuid import UUID

from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision

FORM = 1
# PostgreSQL counts its time from here.
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Address: TypeAlias = IPv4Address | IPv6Address
Fact: TypeAlias = str | int | bool | None
Facts: TypeAlias = dict[str, Fact]

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
    metadata: Mapping[str, Fact] = field(default_factory=dict)
    decision: Decision | None = None
    reason: str | None = None
    thread_id: ThreadId | None = None
    run_id: RunId | None = None

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"{self.action} is not a registered audit action")
        if strange := set(self.metadata) - ACTIONS[self.action]:
            raise ValueError(f"{self.action} may not carry {', '.join(sorted(strange))}")
        if nested := [name for name, value in self.metadata.items() if not isinstance(value, str | int | None)]:
            raise ValueError(f"{self.action} may only carry plain values, not {', '.join(nested)}")


@dataclass(frozen=True)
class Place:
    """From where a person acts, and with which program. Only of people is it kept."""

    ip: Address | None = None
    user_agent: str | None = None


NOWHERE = Place()


@dataclass(frozen=True)
class Actor:
    """Who did it: a person, an agent, or the system itself, which has neither id."""

    type: ActorType
    user_id: UserId | None
    label: str
    agent_id: AgentId | None = None
    place: Place = NOWHERE


SYSTEM = Actor(ActorType.SYSTEM, None, "agent-console")

_COUNT, _HEADER = struct.Struct(">i"), struct.Struct(">Ii")
# The numbers of PostgreSQL's own types; they never change.
_BYTES, _SHORT, _INET, _TIME, _UUID = 17, 21, 869, 1184, 2950


def _record(*values: tuple[int, bytes | None]) -> bytes:
    """Values one after the other, each with its type and length, so that no two rows give the same bytes."""
    parts = [_COUNT.pack(len(values))]
    for kind, body in values:
        if body is None:
            parts.append(_HEADER.pack(kind, -1))
        else:
            parts += (_HEADER.pack(kind, len(body)), body)
    return b"".join(parts)


def _text(value: str | None) -> tuple[int, bytes | None]:
    return _BYTES, None if value is None else value.encode("utf-8", "surrogatepass")


def _id(value: UUID | None) -> tuple[int, bytes | None]:
    return _UUID, None if value is None else value.bytes


def _address(value: Address | None) -> tuple[int, bytes | None]:
    if value is None:
        return _INET, None
    family = 2 if value.version == 4 else 3
    return _INET, bytes((family, value.max_prefixlen, 0, len(value.packed))) + value.packed


class Digits(str):
    """A number as it stands in the stored metadata, digit by digit."""

    __slots__ = ()


def _headed(body: str) -> bytes:
    form = body.encode("utf-8", "surrogatepass")
    return _TEXT + len(form).to_bytes(4, "big") + form


# A record of three texts: the name of a fact, its kind, its value.
_TEXT = struct.pack(">I", _BYTES)
_FACT = _COUNT.pack(3)
_STRING, _NUMBER = _headed("string"), _headed("number")
_NULL = _headed("null") + _HEADER.pack(_BYTES, -1)
_TRUE, _FALSE = (_headed("boolean") + _headed(word) for word in ("true", "false"))


def _fact(name: str, value: Fact) -> bytes:
    """Written for speed: a proof of the trail takes every hash anew."""
    known = _FACT + _headed(name)
    if value is None:
        return known + _NULL
    if isinstance(value, str):
        return known + (_NUMBER if isinstance(value, Digits) else _STRING) + _headed(value)
    if value is True or value is False:
        return known + (_TRUE if value else _FALSE)
    return known + _NUMBER + _headed(int.__repr__(value))


def metadata_form(metadata: Mapping[str, Fact]) -> bytes:
    """A record of name, kind and value for each, in the order of the names' bytes, which is that of the names."""
    return b"".join([_fact(name, metadata[name]) for name in sorted(metadata)])


def event_hash(team_id: TeamId, audit_id: AuditId, actor: Actor, event: AuditEvent, at: datetime) -> bytes:
    """SHA-256 over form 1."""
    record = _record(
        (_SHORT, struct.pack(">h", FORM)),
        _id(team_id),
        _id(audit_id),
        (_TIME, struct.pack(">q", (at - _EPOCH) // _MICROSECOND)),
        _text(actor.type.value),
        _id(actor.user_id),
        _id(actor.agent_id),
        _text(actor.label),
        _text(event.action),
        _text(event.resource_type),
        _text(event.resource_id),
        _id(event.thread_id),
        _id(event.run_id),
        _text(None if event.decision is None else event.decision.value),
        _text(event.reason),
        _address(actor.place.ip),
        _text(actor.place.user_agent),
        (_BYTES, metadata_form(event.metadata) or None),
    )
    return hashlib.sha256(record).digest()

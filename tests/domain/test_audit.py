"""The form of an audit row: nothing in it can change without its hash changing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import pytest

from agent_console.domain.audit import Actor, AuditEvent, Fact, Place, audit_action, event_hash
from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.repository.operations import OPERATIONS

TEAM, ROW, USER = TeamId.new(), AuditId.new(), UserId.new()
V4 = "b43dadeddaa5ee1d46d98a597712dac543c499ec4c8803bccdb465b3e90706ee"
V6 = "da9e1972d0fdbc2a3d0b2217a2f736f4ae3a437b7f6f64e150332661d3ac323a"
NOWHERE_AT_ALL = "a08482c1d1199d666c2837037bc04aafc6a8bd60bd19fa3f744af5eb7450a596"
AT = datetime(2026, 11, 16, 3, 0, 0, 123456, tzinfo=UTC)
ACTOR = Actor(ActorType.HUMAN, USER, "Ana")
EVENT = AuditEvent("job.create", "job", "job_x", {"type": "report", "priority": 1, "scheduled": False})


def test_every_part_is_in_the_hash() -> None:
    known = event_hash(TEAM, ROW, ACTOR, EVENT, AT)
    changed = [
        event_hash(TeamId.new(), ROW, ACTOR, EVENT, AT),
        event_hash(TEAM, AuditId.new(), ACTOR, EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, label="Ole"), EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, user_id=UserId.new()), EVENT, AT),
        event_hash(TEAM, ROW, Actor(ActorType.SYSTEM, None, "Ana"), EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, agent_id=AgentId.new()), EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, place=Place(ip_address("192.0.2.1"))), EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, place=Place(ip_address("::ffff:192.0.2.1"))), EVENT, AT),
        event_hash(TEAM, ROW, replace(ACTOR, place=Place(user_agent="curl")), EVENT, AT),
        event_hash(TEAM, ROW, ACTOR, EVENT, AT + timedelta(microseconds=1)),
        *(
            event_hash(TEAM, ROW, ACTOR, event, AT)
            for event in (
                replace(EVENT, resource_type="jobs"),
                replace(EVENT, resource_id="job_y"),
                replace(EVENT, decision=Decision.BLOCK),
                replace(EVENT, reason="because"),
                replace(EVENT, reason=""),
                replace(EVENT, thread_id=ThreadId.new()),
                replace(EVENT, run_id=RunId.new()),
                replace(EVENT, metadata={"type": "report", "priority": 1}),
                replace(EVENT, metadata={"type": "report", "priority": "1", "scheduled": False}),
                replace(EVENT, metadata={"type": "report", "priority": 1, "scheduled": None}),
            )
        ),
    ]

    assert len({known, *changed}) == len(changed) + 1
    assert event_hash(TEAM, ROW, ACTOR, EVENT, AT.astimezone(tz=None)) == known
    assert len(known) == 32


@pytest.mark.parametrize(
    ("place", "metadata", "known"),
    [
        (Place(ip_address("192.0.2.1"), "curl"), {"type": "Grüße", "priority": 1, "scheduled": True}, V4),
        (Place(ip_address("2001:db8::1")), {"type": None, "priority": -10, "scheduled": False}, V6),
        (Place(), {}, NOWHERE_AT_ALL),
    ],
)
def test_an_act_of_years_ago_has_the_same_hash_today(place: Place, metadata: dict[str, Fact], known: str) -> None:
    """The form is stored in nobody's database: only these numbers hold it. Another form needs another number."""
    team, row, user = (UUID(f"01900000-0000-7000-8000-00000000000{number}") for number in (1, 2, 3))
    actor = Actor(ActorType.HUMAN, UserId.of(user), "Ana", place=place)
    event = AuditEvent("job.create", "job", "job_x", metadata, reason="because")

    assert event_hash(TeamId.of(team), AuditId.of(row), actor, event, AT).hex() == known


def test_an_action_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_console.domain.audit.ACTIONS", {})

    assert audit_action("moon.rise", "height") == "moon.rise"
    with pytest.raises(ValueError, match="registered already"):
        audit_action("moon.rise")


def test_the_order_of_metadata_does_not_matter() -> None:
    turned = replace(EVENT, metadata=dict(reversed(list(EVENT.metadata.items()))))

    assert event_hash(TEAM, ROW, ACTOR, turned, AT) == event_hash(TEAM, ROW, ACTOR, EVENT, AT)


@pytest.mark.parametrize("value", [["content"], {"content": "x"}, 0.5, b"content"])
def test_only_plain_values_are_carried(value: Any) -> None:
    with pytest.raises(ValueError, match="may only carry plain values, not type"):
        AuditEvent("job.create", "job", "job_x", {"type": value})


@pytest.mark.rule("R002-83", "R002-79")
def test_unknown_actions_and_unlisted_metadata_are_refused() -> None:
    with pytest.raises(ValueError, match="not a registered"):
        AuditEvent("job.explode", "job", "job_x")
    with pytest.raises(ValueError, match="may not carry payload"):
        AuditEvent("job.create", "job", "job_x", {"payload": "content"})


def test_every_changing_operation_names_a_registered_action() -> None:
    for operation in OPERATIONS:
        if operation.audit is not None:
            AuditEvent(operation.audit, "thing", "id")

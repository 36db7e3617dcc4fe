"""The form of an audit row: nothing in it can change without its hash changing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import pytest

from agent_console.domain.audit import Actor, AuditEvent, Place, event_hash
from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.repository.operations import OPERATIONS

TEAM, ROW, USER = TeamId.new(), AuditId.new(), UserId.new()
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

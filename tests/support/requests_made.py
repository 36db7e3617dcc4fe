"""Requests of one agent to another, written straight into the database."""

from datetime import datetime

from agent_console.domain.ids import ApprovalId, RouteId, ThreadId, UserId
from tests.support.fleet import Fleet


def add_approval(
    fleet: Fleet,
    thread_id: ThreadId,
    *,
    pair: tuple[str, str] = ("atlas", "beacon"),
    state: str = "pending",
    made_at: datetime | None = None,
) -> ApprovalId:
    """One that waits for another day, or one that was decided when it was made, by the administrator."""
    approval_id, route_id = ApprovalId.new(), RouteId.new()
    decided_by: UserId | None = fleet.user_id("ana@example.com") if state in ("approved", "rejected") else None
    fleet.execute(
        "insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version,"
        " trace_id, envelope, digest, state, expires_at, created_at, decided_at, decided_by_user_id,"
        " decision_reason) values (%s, %s, %s, %s, %s, %s, 1, gen_random_uuid(), '{}', repeat('0', 64), %s,"
        " now() + interval '1 day', coalesce(%s, now()),"
        " case when %s <> 'pending' then coalesce(%s, now()) end, %s, 'as it was written')",
        *(fleet.team_id(), approval_id, thread_id, fleet.agent_id(pair[0]), fleet.agent_id(pair[1]), route_id),
        *(state, made_at, state, made_at, decided_by),
    )
    return approval_id

"""A job in each of its states, with no more than the state itself asks for."""

from datetime import UTC, datetime

from tests.database import rows
from tests.database.team import Row

AT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)

HELD: Row = {"agent_id": rows.agent_id, "claimed_by": "atlas", "assigned_at": AT, "lease_expires_at": AT}
STATES: dict[str, Row] = {
    "scheduled": {"scheduled_for": AT},
    "queued": {},
    "assigned": HELD,
    "running": HELD | {"started_at": AT},
    "succeeded": {"finished_at": AT},
    "failed": {"finished_at": AT},
    "dead_letter": {"finished_at": AT},
    "cancelled": {"finished_at": AT},
}
FINAL = ("succeeded", "failed", "dead_letter", "cancelled")


def in_state(status: str, **changes: object) -> Row:
    return {"status": status} | STATES[status] | changes

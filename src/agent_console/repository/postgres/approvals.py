"""Approvals: what waits for a person, its decision, and how it ends without one."""

from agent_console.repository.postgres import approval_lists, approval_looks, deciding
from agent_console.repository.postgres.approval_endings import (
    supersede_for_route,
    withdraw_for_agent,
    withdraw_for_thread,
)

__all__ = [
    "approval_lists",
    "approval_looks",
    "deciding",
    "supersede_for_route",
    "withdraw_for_agent",
    "withdraw_for_thread",
]

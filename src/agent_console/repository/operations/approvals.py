"""Approvals: delegations that wait for a person."""

from agent_console.repository.operations.declared import AnyOperation

NOUNS: dict[str, str] = {}

APPROVALS: tuple[AnyOperation, ...] = ()

"""The audit trail: reading it, and proving that nobody changed it."""

from agent_console.repository.operations.declared import AnyOperation

NOUNS: dict[str, str] = {}

AUDIT_TRAIL: tuple[AnyOperation, ...] = ()

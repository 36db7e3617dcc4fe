"""A2A routes: which agent may ask which."""

from agent_console.repository.operations.declared import AnyOperation

NOUNS: dict[str, str] = {}

ROUTES: tuple[AnyOperation, ...] = ()

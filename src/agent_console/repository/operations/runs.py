"""Runs: one agent asked to act in a thread, and the delegation of one agent to another."""

from agent_console.repository.operations.declared import AnyOperation

NOUNS: dict[str, str] = {}

RUNS: tuple[AnyOperation, ...] = ()

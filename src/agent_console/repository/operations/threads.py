"""Threads, who takes part in them, and what is said there."""

from agent_console.repository.operations.declared import AnyOperation

NOUNS: dict[str, str] = {}

THREADS: tuple[AnyOperation, ...] = ()

"""Every operation, declared once.

Server routes, the HTTP client, command-line verbs, console actions, key help, read-only pruning and the
permission table are all derived from these declarations; nothing else in the house names a path or a verb.
"""

from agent_console.repository.operations import fleet
from agent_console.repository.operations.declared import Answered, AnyOperation, Asked, Operation, Verb
from agent_console.repository.operations.fleet import (
    AGENTS_GET,
    AGENTS_LIST,
    FLEET,
    JOBS_CREATE,
    JOBS_GET,
    JOBS_LIST,
    ME,
    POOL_STATUS,
    QUEUE_DEPTH,
)

OPERATIONS: tuple[AnyOperation, ...] = FLEET
NOUNS: dict[str, str] = fleet.NOUNS

__all__ = [
    "AGENTS_GET",
    "AGENTS_LIST",
    "JOBS_CREATE",
    "JOBS_GET",
    "JOBS_LIST",
    "ME",
    "NOUNS",
    "OPERATIONS",
    "POOL_STATUS",
    "QUEUE_DEPTH",
    "Answered",
    "AnyOperation",
    "Asked",
    "Operation",
    "Verb",
]

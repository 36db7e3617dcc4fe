"""The one seam: what the console and the command line know of everything behind it."""

from collections.abc import AsyncGenerator
from enum import StrEnum
from typing import Protocol, Self

from agent_console.domain.records import Record
from agent_console.repository.operations import Answered, Asked, Operation


class Topic(StrEnum):
    AGENTS = "agents"
    JOBS = "jobs"
    SESSIONS = "sessions"
    TOKENS = "tokens"
    CONNECTORS = "connectors"
    COLLECTIONS = "collections"
    USERS = "users"
    THREADS = "threads"
    MESSAGES = "messages"
    RUNS = "runs"
    ROUTES = "routes"
    APPROVALS = "approvals"
    AUDIT = "audit"
    WORK = "work"
    EVERYTHING = "everything"


class Change(Record):
    """Something of this topic changed. Without an id, or with EVERYTHING, the reader fetches again."""

    topic: Topic
    id: str | None = None


REFETCH = Change(topic=Topic.EVERYTHING)


class Repository(Protocol):
    """Answers operations. Every refusal is a ConsoleError; nothing else leaves it."""

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered: ...

    def changes(self) -> AsyncGenerator[Change, None]:
        """Notices of what the reader may see, for as long as it listens and may. The first is always a REFETCH,
        as is the first after every lost connection: between the two something may have been missed."""
        ...

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

"""Every operation, declared once.

Server routes, the HTTP client, command-line verbs, console actions, key help, read-only pruning and the
permission table are all derived from these declarations; nothing else in the house names a path or a verb.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from agent_console.domain.agents import Agent, AgentAsked, AgentQuery, PoolStatus
from agent_console.domain.identity import Myself
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob, QueueDepth
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page, Request


class Verb(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered", bound=BaseModel)

_PATH_FIELD = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Operation(Generic[Asked, Answered]):
    """What can be asked of a repository.

    `name` is noun.verb and becomes the command line's `noun verb`. Fields of the request that stand in the
    path travel there; the others travel as the query of a GET and as the body of everything else. `audit`
    names the action that a changing operation writes in its own transaction.
    """

    name: str
    summary: str
    verb: Verb
    path: str
    request: type[Asked]
    answer: type[Answered]
    permission: Permission | None
    audit: str | None = None
    danger: bool = False
    created: bool = False

    @property
    def noun(self) -> str:
        return self.name.partition(".")[0]

    @property
    def action(self) -> str:
        return self.name.partition(".")[2]

    @property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(_PATH_FIELD.findall(self.path))

    @property
    def changes(self) -> bool:
        return self.audit is not None


ME = Operation(
    name="me.show",
    summary="Who you are here, and what you are connected to.",
    verb=Verb.GET,
    path="/v1/me",
    request=Nothing,
    answer=Myself,
    permission=None,
)
POOL_STATUS = Operation(
    name="pool.status",
    summary="How many agents are online and idle, and how many jobs run.",
    verb=Verb.GET,
    path="/v1/pool",
    request=Nothing,
    answer=PoolStatus,
    permission=Permission.SEE_FLEET,
)
QUEUE_DEPTH = Operation(
    name="queue.depth",
    summary="How many jobs are in each state, and how long the oldest has waited.",
    verb=Verb.GET,
    path="/v1/queue",
    request=Nothing,
    answer=QueueDepth,
    permission=Permission.SEE_FLEET,
)
AGENTS_LIST = Operation(
    name="agents.list",
    summary="The agents of the team, oldest first.",
    verb=Verb.GET,
    path="/v1/agents",
    request=AgentQuery,
    answer=Page[Agent],
    permission=Permission.SEE_FLEET,
)
AGENTS_GET = Operation(
    name="agents.get",
    summary="One agent, whole.",
    verb=Verb.GET,
    path="/v1/agents/{agent_id}",
    request=AgentAsked,
    answer=Agent,
    permission=Permission.SEE_FLEET,
)
JOBS_LIST = Operation(
    name="jobs.list",
    summary="The jobs of the team, newest first.",
    verb=Verb.GET,
    path="/v1/jobs",
    request=JobQuery,
    answer=Page[Job],
    permission=Permission.SEE_FLEET,
)
JOBS_GET = Operation(
    name="jobs.get",
    summary="One job, whole.",
    verb=Verb.GET,
    path="/v1/jobs/{job_id}",
    request=JobAsked,
    answer=Job,
    permission=Permission.SEE_FLEET,
)
JOBS_CREATE = Operation(
    name="jobs.create",
    summary="Put a job into the queue.",
    verb=Verb.POST,
    path="/v1/jobs",
    request=NewJob,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit="job.create",
    created=True,
)

AnyOperation = Operation[Any, Any]

OPERATIONS: tuple[AnyOperation, ...] = (
    ME,
    POOL_STATUS,
    QUEUE_DEPTH,
    AGENTS_LIST,
    AGENTS_GET,
    JOBS_LIST,
    JOBS_GET,
    JOBS_CREATE,
)

"""The fleet and the queue: what is looked at most."""

from agent_console.domain.agents import Agent, AgentAsked, AgentQuery, PoolStatus
from agent_console.domain.audit import audit_action
from agent_console.domain.identity import Myself
from agent_console.domain.jobs import Job, JobAsked, JobQuery, NewJob, QueueDepth
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

JOB_CREATED = audit_action("job.create", "type", "priority", "bound_agent_id", "collection_id", "scheduled")

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
    audit=JOB_CREATED,
    created=True,
)

NOUNS = {
    "me": "Who you are here.",
    "pool": "The agent pool at a glance.",
    "queue": "The job queue at a glance.",
    "agents": "The agents of the team.",
    "jobs": "The jobs of the team.",
}

FLEET: tuple[AnyOperation, ...] = (
    ME,
    POOL_STATUS,
    QUEUE_DEPTH,
    AGENTS_LIST,
    AGENTS_GET,
    JOBS_LIST,
    JOBS_GET,
    JOBS_CREATE,
)

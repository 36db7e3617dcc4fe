"""Every operation, declared once.

Server routes, the HTTP client, command-line verbs, console actions, key help, read-only pruning and the
permission table are all derived from these declarations; nothing else in the house names a path or a verb.
"""

from agent_console.repository.operations import (
    approvals,
    attention,
    audit_trail,
    credentials,
    database,
    duties,
    fleet,
    people,
    presence,
    routes,
    runs,
    sessions,
    storage,
    threads,
    working,
)
from agent_console.repository.operations.agents import AGENTS
from agent_console.repository.operations.approvals import APPROVALS
from agent_console.repository.operations.attention import ATTENTION
from agent_console.repository.operations.audit_trail import AUDIT_TRAIL
from agent_console.repository.operations.credentials import CREDENTIALS
from agent_console.repository.operations.database import DATABASE
from agent_console.repository.operations.declared import Answered, AnyOperation, Asked, Operation, Verb
from agent_console.repository.operations.duties import DUTIES
from agent_console.repository.operations.enqueueing import ENQUEUEING
from agent_console.repository.operations.explaining import EXPLAINING
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
from agent_console.repository.operations.job_acts import JOB_ACTS
from agent_console.repository.operations.pausing import PAUSING
from agent_console.repository.operations.people import PEOPLE
from agent_console.repository.operations.presence import PRESENCE
from agent_console.repository.operations.routes import ROUTES
from agent_console.repository.operations.runs import RUNS
from agent_console.repository.operations.sessions import SESSIONS
from agent_console.repository.operations.storage import STORAGE
from agent_console.repository.operations.threads import THREADS
from agent_console.repository.operations.working import WORKING

# /v1/agents/count has to be asked before /v1/agents/{agent_id}.
OPERATIONS: tuple[AnyOperation, ...] = (
    AGENTS
    + FLEET
    + CREDENTIALS
    + STORAGE
    + PEOPLE
    + PRESENCE
    + SESSIONS
    + ENQUEUEING
    + JOB_ACTS
    + PAUSING
    + WORKING
    + EXPLAINING
    + THREADS
    + RUNS
    + ROUTES
    + APPROVALS
    + AUDIT_TRAIL
    + DUTIES
    + ATTENTION
    + DATABASE
)
NOUNS: dict[str, str] = (
    fleet.NOUNS
    | credentials.NOUNS
    | storage.NOUNS
    | people.NOUNS
    | presence.NOUNS
    | sessions.NOUNS
    | working.NOUNS
    | threads.NOUNS
    | runs.NOUNS
    | routes.NOUNS
    | approvals.NOUNS
    | audit_trail.NOUNS
    | duties.NOUNS
    | attention.NOUNS
    | database.NOUNS
)

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

"""Who is calling."""

from enum import StrEnum

from pydantic import Field

from agent_console.domain.ids import AgentId, OperatorTokenId, TeamId, UserId
from agent_console.domain.pausing import Pause
from agent_console.domain.permissions import Role
from agent_console.domain.records import Record


class AuthSource(StrEnum):
    """What proved who the caller is."""

    DATABASE = "database"
    OPERATOR_TOKEN = "operator_token"
    API_KEY = "api_key"
    WORKER_TOKEN = "worker_token"
    REGISTRATION_TOKEN = "registration_token"


class WorkerAuthContext(Record):
    """What a worker's credential allows. None is any, an empty set is none; capabilities are never None."""

    worker_id: str
    auth_source: AuthSource
    allowed_repositories: frozenset[str] | None = None
    allowed_job_types: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()


class Caller(Record):
    """The person (or agent) behind a call, as the database knew them when the call was made.

    An agent acts as its system user, with `agent_id` and `worker` set.
    """

    team_id: TeamId
    team: str
    user_id: UserId
    name: str
    role: Role
    auth_source: AuthSource
    token_id: OperatorTokenId | None = Field(None, description="The token that a person asks with, if it is one.")
    agent_id: AgentId | None = None
    worker: WorkerAuthContext | None = None


class Myself(Caller):
    """What a client is told about itself and about what it is connected to."""

    program_version: str
    database_version: str
    pause: Pause | None = Field(None, description="Null unless the queue is paused.")

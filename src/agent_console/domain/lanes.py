"""Lanes: what decides who may take a job, in one word, resolved when the job is enqueued."""

import hashlib
import json
from dataclasses import dataclass

from agent_console.domain.capabilities import unmet
from agent_console.domain.identity import WorkerAuthContext
from agent_console.domain.ids import AgentId, ConnectorId, LaneId
from agent_console.domain.kinds import CredentialLocation


def lane_key(
    bound_agent_id: AgentId | None,
    required_capabilities: tuple[str, ...],
    job_type: str,
    repository: str | None,
    connector_id: ConnectorId | None,
) -> str:
    """Everything that decides who may take a job, in one fixed-length word."""
    parts = [
        None if bound_agent_id is None else str(bound_agent_id),
        list(required_capabilities),
        job_type,
        repository,
        None if connector_id is None else str(connector_id),
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


@dataclass(frozen=True)
class Lane:
    """One lane as it is now; `credentials` says where those of its connector are kept."""

    id: LaneId
    bound_agent_id: AgentId | None
    required_capabilities: tuple[str, ...]
    job_type: str | None
    repository: str | None
    connector_id: ConnectorId | None
    credentials: CredentialLocation | None

    def why_not(
        self, worker: WorkerAuthContext, agent_id: AgentId, connectors: frozenset[ConnectorId]
    ) -> str | None:
        """What keeps this worker from taking the lane's jobs, or None when nothing does.

        A job bound to an agent needs none of its capabilities; what the credential allows and where the
        connector's credentials are counts for bound jobs too.
        """
        if self.bound_agent_id not in (None, agent_id):
            return "bound to another agent"
        if worker.allowed_job_types is not None and self.job_type not in worker.allowed_job_types:
            return f"its credential does not allow jobs of type {self.job_type}"
        if worker.allowed_repositories is not None and self.repository not in worker.allowed_repositories:
            return f"its credential does not allow the repository {self.repository or '(none)'}"
        if self.credentials is CredentialLocation.PENDING:
            return "the connector has no credentials yet"
        if self.credentials is CredentialLocation.AGENT and self.connector_id not in connectors:
            return "it has no credentials for the connector"
        if self.bound_agent_id is None and (lacking := unmet(self.required_capabilities, worker.capabilities)):
            return f"it lacks {', '.join(lacking)}"
        return None

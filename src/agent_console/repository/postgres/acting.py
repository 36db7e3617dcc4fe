"""Which agent is calling, and what was last known of what it can do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Forbidden
from agent_console.domain.identity import Caller, WorkerAuthContext
from agent_console.domain.ids import AgentId, ConnectorId, TeamId
from agent_console.domain.kinds import Decision
from agent_console.domain.permissions import Permission, require_permission
from agent_console.domain.working import ClaimWanted
from agent_console.repository.operations.working import WORKER_REFUSED
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.identify import ByAgentKey, Identify, refused_credential, require_worker
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.lane_book import Routing

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

KNOWN_AT_MOST = 200_000

# `mark` is what take_turns compares with: it changes with whatever decides the agent's lanes.
KNOWN = """
    select r.capabilities, k.ids as connectors,
           md5(r.capabilities::text || coalesce(k.words, '')) as mark
      from agents a
      join agent_runtime r on r.team_id = a.team_id and r.agent_id = a.id
      cross join lateral (
           select array_agg(k.connector_id) as ids,
                  string_agg(k.connector_id::text, ',' order by k.connector_id) as words
             from agent_connectors k
            where k.team_id = a.team_id and k.agent_id = a.id) as k
     where a.team_id = %(team_id)s and a.id = %(agent_id)s and a.deleted_at is null
"""


@dataclass(frozen=True)
class Acting:
    """An agent's call. A key that is still to be proved is proved by the statement that does what it asks."""

    team_id: TeamId
    agent_id: AgentId
    key_hash: str | None = None
    worker: WorkerAuthContext | None = None


@dataclass(frozen=True)
class Known:
    """`unrestricted` is where the agent is served when neither credential nor claim narrows it: nearly always."""

    unrestricted: Routing
    mark: str

    def routing(self, acting: Acting, wanted: ClaimWanted) -> Routing:
        """What the credential allows, narrowed by what the claim asks for."""
        worker = acting.worker
        if worker is None and wanted.allowed_types is None:
            return self.unrestricted
        types = None if wanted.allowed_types is None else frozenset(wanted.allowed_types)
        if worker is not None and worker.allowed_job_types is not None:
            types = worker.allowed_job_types if types is None else types & worker.allowed_job_types
        return Routing(
            team_id=acting.team_id,
            capabilities=self.unrestricted.capabilities if worker is None else worker.capabilities,
            connectors=self.unrestricted.connectors,
            types=types,
            repositories=None if worker is None else worker.allowed_repositories,
        )


class KnownAgents:
    """Remembered between calls; a claim finds out by itself when it is no longer so."""

    def __init__(self, connections: QueueConnections) -> None:
        self._connections = connections
        self._known: dict[AgentId, Known] = {}
        self._routings: dict[Routing, Routing] = {}

    async def of(self, acting: Acting) -> Known:
        if (known := self._known.get(acting.agent_id)) is not None:
            return known
        facts = {"team_id": acting.team_id, "agent_id": acting.agent_id}
        rows: Sequence[Any] = await self._connections.rows(KNOWN, facts)
        if not rows:
            raise refused_credential()
        row = rows[0]
        if len(self._known) >= KNOWN_AT_MOST:
            self._known.clear()
            self._routings.clear()
        connectors = frozenset(ConnectorId.of(connector) for connector in row.connectors or ())
        routing = Routing(acting.team_id, frozenset(row.capabilities), connectors)
        # Agents that are served together have one and the same: comparing two takes longer than finding it.
        known = Known(self._routings.setdefault(routing, routing), row.mark)
        self._known[acting.agent_id] = known
        return known

    def forget(self, agent_id: AgentId) -> None:
        self._known.pop(agent_id, None)


async def acting_agent(repository: "PostgresRepository", operation: str, worker_id: str | None = None) -> Acting:
    """Who calls. A worker id in the request must be the one that the credential proves."""
    identify, database = repository.identify, repository.backend.database
    if isinstance(identify, ByAgentKey) and isinstance(identify.secret.owner, AgentId) and worker_id is None:
        secret = identify.secret
        return Acting(secret.team_id, identify.secret.owner, key_hash=secret.hash)
    caller = await database.within_time(_caller(database, identify))
    require_permission(caller.role, Permission.ACT_AS_AGENT, operation)
    if caller.agent_id is None:
        raise Forbidden("Only an agent works on jobs.", hint="Use the agent's own key.")
    if worker_id is not None:
        try:
            require_worker(caller, worker_id)
        except Forbidden:
            await database.within_time(_tell_refused(database, caller, operation, worker_id))
            raise
    return Acting(caller.team_id, caller.agent_id, worker=caller.worker)


async def _caller(database: Database, identify: Identify) -> Caller:
    async with database.reading() as connection:
        return await identify(connection)


async def _tell_refused(database: Database, caller: Caller, operation: str, worker_id: str) -> None:
    """A refusal changes nothing, so its row has a transaction of its own."""
    async with database.changing() as connection:
        at = await transaction_time(connection)
        event = AuditEvent(
            WORKER_REFUSED,
            "agent",
            str(caller.agent_id),
            metadata={"operation": operation, "asked_as": worker_id},
            decision=Decision.BLOCK,
        )
        await audit.append_for(connection, caller.team_id, audit.actor_of(caller), event, at)

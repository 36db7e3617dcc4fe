"""What can be done to an agent."""

from agent_console.domain.agent_changes import (
    AgentConfiguration,
    AgentCount,
    AgentCountQuery,
    AgentDraining,
    AgentImport,
    AgentLimit,
    AgentRenaming,
    AgentRevocation,
)
from agent_console.domain.agents import Agent, AgentAsked
from agent_console.domain.audit import audit_action
from agent_console.domain.hosted import HostedAgent, LifecycleMove, NewHostedAgent
from agent_console.domain.permissions import Permission
from agent_console.domain.states import Lifecycle
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

AGENT_RENAMED = audit_action("agent.rename")
AGENT_DRAINED = audit_action("agent.drain", "jobs")
AGENT_RESUMED = audit_action("agent.resume")
AGENT_LIMITED = audit_action("agent.limit", "max_concurrent_jobs")
AGENT_CONFIGURED = audit_action("agent.configure", "connector_ref", "profile")
AGENT_REVOKED = audit_action("agent.revoke", "sessions", "jobs", "waiting")
AGENT_DELETED = audit_action("agent.deleted", "sessions", "jobs", "waiting", "routes", "memberships")
AGENT_IMPORTED = audit_action("agent.import", "owner_user_id", "replaced")
AGENT_HOSTED = audit_action("agent.created", "cpu_millicores", "memory_mb")
AGENT_MOVED = audit_action("agent.move", "from", "to", "sessions", "jobs")
AGENT_STARTED = audit_action("agent.started", "from", "to", "sessions", "jobs")
AGENT_STOPPED = audit_action("agent.stopped", "from", "to", "sessions", "jobs")

AGENTS_COUNT = Operation(
    name="agents.count",
    summary="How many agents there are.",
    verb=Verb.GET,
    path="/v1/agents/count",
    request=AgentCountQuery,
    answer=AgentCount,
    permission=Permission.SEE_FLEET,
)
AGENTS_RENAME = Operation(
    name="agents.rename",
    summary="Give an agent, and its system user, another name.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/rename",
    request=AgentRenaming,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_RENAMED,
)
AGENTS_DRAIN = Operation(
    name="agents.drain",
    summary="Let an agent take no more jobs.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/drain",
    request=AgentDraining,
    answer=Agent,
    permission=Permission.WORK_QUEUE,
    audit=AGENT_DRAINED,
)
AGENTS_RESUME = Operation(
    name="agents.resume",
    summary="Let a drained agent take jobs again.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/resume",
    request=AgentAsked,
    answer=Agent,
    permission=Permission.WORK_QUEUE,
    audit=AGENT_RESUMED,
)
AGENTS_LIMIT = Operation(
    name="agents.limit",
    summary="Say how many jobs an agent may hold at once.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/limit",
    request=AgentLimit,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_LIMITED,
)
AGENTS_CONFIGURE = Operation(
    name="agents.configure",
    summary="Change an agent's routing hint or its description.",
    verb=Verb.PATCH,
    path="/v1/agents/{agent_id}",
    request=AgentConfiguration,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_CONFIGURED,
)
AGENTS_REVOKE = Operation(
    name="agents.revoke",
    summary="End an agent's access; it stays in the pool as revoked.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/revoke",
    request=AgentRevocation,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_REVOKED,
    danger=True,
)
AGENTS_DELETE = Operation(
    name="agents.delete",
    summary="Remove an agent; what it did keeps its name.",
    verb=Verb.DELETE,
    path="/v1/agents/{agent_id}",
    request=AgentAsked,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_DELETED,
    danger=True,
)
AGENTS_IMPORT = Operation(
    name="agents.import",
    summary="Put an agent of another registry in its place, by its id.",
    verb=Verb.PUT,
    path="/v1/agents/{agent_id}",
    request=AgentImport,
    answer=Agent,
    permission=Permission.ADMINISTER,
    audit=AGENT_IMPORTED,
)
AGENTS_HOST = Operation(
    name="agents.host",
    summary="Make a hosted agent of your own; its key is shown once.",
    verb=Verb.POST,
    path="/v1/agents",
    request=NewHostedAgent,
    answer=HostedAgent,
    permission=Permission.WORK_QUEUE,
    audit=AGENT_HOSTED,
    created=True,
)
AGENTS_MOVE = Operation(
    name="agents.move",
    summary="Move a hosted agent along its lifecycle.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/lifecycle",
    request=LifecycleMove,
    answer=Agent,
    permission=Permission.WORK_QUEUE,
    audit=AGENT_MOVED,
)


def move_action(to: Lifecycle) -> str:
    """What the trail calls a move: starting and stopping have names of their own."""
    return {Lifecycle.RUNNING: AGENT_STARTED, Lifecycle.STOPPED: AGENT_STOPPED}.get(to, AGENT_MOVED)


AGENTS: tuple[AnyOperation, ...] = (
    AGENTS_COUNT,
    AGENTS_RENAME,
    AGENTS_DRAIN,
    AGENTS_RESUME,
    AGENTS_LIMIT,
    AGENTS_CONFIGURE,
    AGENTS_REVOKE,
    AGENTS_DELETE,
    AGENTS_IMPORT,
    AGENTS_HOST,
    AGENTS_MOVE,
)

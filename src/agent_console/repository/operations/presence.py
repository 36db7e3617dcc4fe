"""Signs of life."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.presence import Disconnected, Heartbeat, HeartbeatAnswer
from agent_console.domain.records import Nothing
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

AUTH_RATE_LIMITED = audit_action("auth.rate_limited", "operation", "per_minute")

HEARTBEAT_SEND = Operation(
    name="heartbeat.send",
    summary="An agent's sign of life; renews the leases of the jobs it names.",
    verb=Verb.POST,
    path="/v1/heartbeat",
    request=Heartbeat,
    answer=HeartbeatAnswer,
    permission=Permission.ACT_AS_AGENT,
    writes=True,
    per_minute=60,
)
HEARTBEAT_DISCONNECT = Operation(
    name="heartbeat.disconnect",
    summary="An agent's last word: it is offline at once, and its jobs go back to the queue at no cost.",
    verb=Verb.POST,
    path="/v1/heartbeat/disconnect",
    request=Nothing,
    answer=Disconnected,
    permission=Permission.ACT_AS_AGENT,
    writes=True,
)

NOUNS = {"heartbeat": "What agents say to be seen as online, and when they go."}

PRESENCE: tuple[AnyOperation, ...] = (HEARTBEAT_SEND, HEARTBEAT_DISCONNECT)

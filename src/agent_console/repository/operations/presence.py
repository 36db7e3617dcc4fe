"""Signs of life."""

from agent_console.domain.permissions import Permission
from agent_console.domain.presence import Heartbeat, HeartbeatAnswer
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

HEARTBEAT_SEND = Operation(
    name="heartbeat.send",
    summary="An agent's sign of life; renews the leases of the jobs it names.",
    verb=Verb.POST,
    path="/v1/heartbeat",
    request=Heartbeat,
    answer=HeartbeatAnswer,
    permission=Permission.ACT_AS_AGENT,
    writes=True,
)

NOUNS = {"heartbeat": "What agents say to be seen as online."}

PRESENCE: tuple[AnyOperation, ...] = (HEARTBEAT_SEND,)

"""Stopping the queue of a team, and letting it go on."""

from agent_console.domain.audit import audit_action
from agent_console.domain.pausing import QueuePaused, QueuePausing
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

QUEUE_WAS_PAUSED = audit_action("queue.pause", "mode", "jobs")
QUEUE_WAS_RESUMED = audit_action("queue.resume", "mode", "seconds")

QUEUE_PAUSE = Operation(
    name="queue.pause",
    summary="Let no agent claim a job: what runs finishes (drain) or goes back to the queue (quiesce).",
    verb=Verb.POST,
    path="/v1/queue/pause",
    request=QueuePausing,
    answer=QueuePaused,
    permission=Permission.ADMINISTER,
    audit=QUEUE_WAS_PAUSED,
    danger=True,
    waits_seconds=60.0,
)
QUEUE_RESUME = Operation(
    name="queue.resume",
    summary="Let agents claim jobs again.",
    verb=Verb.POST,
    path="/v1/queue/resume",
    request=Nothing,
    answer=QueuePaused,
    permission=Permission.ADMINISTER,
    audit=QUEUE_WAS_RESUMED,
)

PAUSING: tuple[AnyOperation, ...] = (QUEUE_PAUSE, QUEUE_RESUME)

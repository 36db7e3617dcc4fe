"""Why a job waits, and how the queue goes."""

from agent_console.domain.explaining import Explanation
from agent_console.domain.jobs import JobAsked
from agent_console.domain.permissions import Permission
from agent_console.domain.queue_stats import QueueStats
from agent_console.domain.records import Nothing
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

JOBS_EXPLAIN = Operation(
    name="jobs.explain",
    summary="Why a job is not running: what it waits for, and who could take it.",
    verb=Verb.GET,
    path="/v1/jobs/{job_id}/explanation",
    request=JobAsked,
    answer=Explanation,
    permission=Permission.SEE_FLEET,
)
QUEUE_STATS = Operation(
    name="queue.stats",
    summary="How the queue goes: depth by state, type and lane, totals, waits and losses.",
    verb=Verb.GET,
    path="/v1/queue/stats",
    request=Nothing,
    answer=QueueStats,
    permission=Permission.SEE_FLEET,
)

EXPLAINING: tuple[AnyOperation, ...] = (JOBS_EXPLAIN, QUEUE_STATS)

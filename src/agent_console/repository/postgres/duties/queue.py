"""The duties of the queue: let time do its work on the jobs, and keep the counts."""

from time import monotonic

from agent_console.domain.duties import COUNTS, HISTORY, JOBS
from agent_console.domain.errors import TimedOut
from agent_console.repository.postgres.duties.declared import Duty
from agent_console.repository.postgres.repository import Backend

# Who has fallen behind catches up, but a round ends in time for the next.
PRUNING_SECONDS = 30.0
BATCH = 500
FOLDED_AT_ONCE = 5_000

# One process at a time; whoever comes meanwhile has nothing to do. `after` is where the last round ended: what it
# folded lies before, dead but not yet gone.
FOLD = """
    select f.last_id, f.folded
      from (select pg_try_advisory_xact_lock(hashtext('agent_console.duties'), hashtext('counts')) as mine) as lock
      cross join lateral fold_queue_moves(%(after)s, %(at_most)s) as f
     where lock.mine
"""
PRUNE = """
    select prune_jobs(%(at_most)s) as pruned
      from (select pg_try_advisory_xact_lock(hashtext('agent_console.duties'), hashtext('history')) as mine) as l
     where l.mine
"""
# Rows that were committed late have numbers that were passed already: every so often all are looked at.
FROM_THE_START_EVERY = 10


async def tend_jobs(backend: Backend) -> int:
    """Schedules and retries that are due may be claimed; leases, deadlines and run times that are over end."""
    touched = 0
    while done := await backend.queue.tend(BATCH):
        touched += done
        if done < BATCH:
            break
    return touched


async def keep_counts(backend: Backend) -> int | None:
    queue, folded = backend.queue, 0
    after = 0 if queue.counts_folded % FROM_THE_START_EVERY == 0 else queue.counts_after
    queue.counts_folded += 1
    while rows := await queue.connections.rows(FOLD, {"after": after, "at_most": FOLDED_AT_ONCE}):
        folded += int(rows[0].folded)
        after = queue.counts_after = rows[0].last_id or after
        if rows[0].folded < FOLDED_AT_ONCE:
            return folded
    return folded or None


async def prune_jobs(backend: Backend) -> int | None:
    """A part at a time, and smaller ones where jobs have so long a story that a part does not go in time."""
    pruned, at_most, until = 0, BATCH, monotonic() + PRUNING_SECONDS
    while monotonic() < until:
        try:
            mine = await backend.queue.connections.rows(PRUNE, {"at_most": at_most})
        except TimedOut:
            if at_most == 1:
                raise
            at_most = max(1, at_most // 8)
            continue
        if not mine:
            return pruned or None
        pruned += mine[0].pruned
        if mine[0].pruned < at_most:
            break
    return pruned


TEND_JOBS = Duty.of(JOBS, tend_jobs)
KEEP_COUNTS = Duty.of(COUNTS, keep_counts)
PRUNE_JOBS = Duty.of(HISTORY, prune_jobs)

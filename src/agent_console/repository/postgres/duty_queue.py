"""The duties of the queue: let time do its work on the jobs, and keep the counts."""

from agent_console.repository.postgres.duty_declared import Duty
from agent_console.repository.postgres.repository import Backend

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
     union all
    select 0 limit 1
"""
PRUNED_IN_A_ROUND = 20
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


async def keep_counts(backend: Backend) -> int:
    queue, folded = backend.queue, 0
    after = 0 if queue.counts_folded % FROM_THE_START_EVERY == 0 else queue.counts_after
    queue.counts_folded += 1
    while rows := await queue.connections.rows(FOLD, {"after": after, "at_most": FOLDED_AT_ONCE}):
        folded += rows[0].folded
        after = queue.counts_after = rows[0].last_id or after
        if rows[0].folded < FOLDED_AT_ONCE:
            break
    return folded


async def prune_jobs(backend: Backend) -> int:
    """A part at a time: the rest is for the next round, so that nobody waits for a long deletion."""
    pruned = 0
    for _ in range(PRUNED_IN_A_ROUND):
        (row,) = await backend.queue.connections.rows(PRUNE, {"at_most": BATCH})
        pruned += row.pruned
        if row.pruned < BATCH:
            break
    return pruned


TEND_JOBS = Duty("jobs", 0.5, tend_jobs)
KEEP_COUNTS = Duty("counts", 2.0, keep_counts)
PRUNE_JOBS = Duty("history", 60.0, prune_jobs)

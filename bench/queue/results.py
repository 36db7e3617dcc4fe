"""RESULTS.md: the figures, what each means, and how everybody was run."""

from collections.abc import Sequence

from bench.queue.plan import Plan
from bench.queue.told import Found, limits_table

HOW = """## How everybody was run

One after the other in turns, in one run, on one PostgreSQL, each in a database of its own, which is
vacuumed and followed by a checkpoint before every slice. Every contender's workers are coroutines
of one Python process with nothing to do but to count; the jobs carry the same small payload.

- **Ours, gathered**: the agents of one process share one `Backend`, as they do in the server; each
  completes its job and claims the next with one `jobs.complete`. The duties (counting, tending,
  silence) are done in the same process. Its event rows can't be turned off.
- **Ours, each worker its own connection**: as many `Backend`s as workers, nothing is gathered.
- **Ours, claim and complete apart**: gathered, but with a `claims.take` and a `jobs.complete` for
  each job.
- **Procrastinate**: `App.run_worker_async` with `PsycopgConnector`, all settings at their defaults,
  LISTEN on. A fleet of n workers with concurrency 1 and two connections each, or one worker with
  concurrency n and n + 1 connections; limits are taken from the faster of the two. It writes event
  rows, and keeps finished jobs, as it does by default.
- **PgQueuer**: `QueueManager.run` as its command line does it, asyncpg on uvloop, a connection for
  each manager, durable tables (its default), batches of 1 or of 10 (its default). It writes a log
  row for each step, and deletes finished jobs, as it does by default. A manager takes the next
  batch without waiting for the last one to be done.
- **The ceiling**: psycopg, autocommit, prepared statements, rows of its own for each connection.
"""


def render(facts: Sequence[tuple[str, str]], found: Sequence[Found], plan: Plan) -> str:
    """The whole file; what was not measured is not in it."""
    limits = [limit for part in found for limit in part.limits]
    told = "\n".join(f"| {name} | {value} |" for name, value in facts)
    tables = [table.as_markdown() for part in found for table in part.tables]
    return "\n".join(
        (
            "# The queue beside its peers\n",
            f"Written by `make bench`; parts measured: {', '.join(plan.parts)}.\n",
            f"| | |\n|---|---|\n{told}\n",
            limits_table(limits).as_markdown(),
            *tables,
            HOW,
        )
    )

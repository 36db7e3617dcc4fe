"""What an operator does to many jobs: one batch a call, newest first, each in a transaction of its own.

Newest first, so that what comes into being meanwhile is never reached: a job that is retried and fails again at
once is not retried for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CTE, Select, func, select, union_all

from agent_console.database.tables import jobs
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.batches import Refusal
from agent_console.domain.ids import JobId, TeamId
from agent_console.domain.job_acts import (
    EXAMPLES,
    JobBatch,
    JobExample,
    JobsCancelling,
    JobSelection,
    JobsReprioritising,
    JobsRetrying,
)
from agent_console.domain.jobs import JobFilter
from agent_console.domain.states import JobStatus
from agent_console.repository.operations.job_acts import (
    JOBS_CANCEL_MANY,
    JOBS_CANCELLED,
    JOBS_REPRIORITISE_MANY,
    JOBS_REPRIORITISED,
    JOBS_RETRIED,
    JOBS_RETRY_MANY,
)
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import position
from agent_console.repository.postgres.queue.cancelling import Cancel
from agent_console.repository.postgres.queue.job_changes import Act, JobRow, Sorted, jobs_named, no_job
from agent_console.repository.postgres.queue.job_filters import LOOKED_AT as LOOKED_AT_BY_FILTERS
from agent_console.repository.postgres.queue.job_filters import SAID_BY_FIELD, JobMatch, job_match
from agent_console.repository.postgres.queue.reprioritising import Reprioritise
from agent_console.repository.postgres.queue.retrying import Retry
from agent_console.repository.postgres.registry.connectors import refused_field
from agent_console.repository.postgres.work import Work, answers

FILTERS = tuple(JobFilter.model_fields)
# How many jobs one batch looks at, and how many a dry run: also where counting ends.
LOOKED_AT = 10_000
LOOKED_AT_DRY = 100_000

NEWEST = JobId(int=2**128 - 1)


@answers(JOBS_CANCEL_MANY)
async def cancel_jobs(work: Work, asked: JobsCancelling) -> JobBatch:
    return await _do_batch(work, asked, Cancel(asked.reason), JOBS_CANCELLED, {})


@answers(JOBS_RETRY_MANY)
async def retry_jobs(work: Work, asked: JobsRetrying) -> JobBatch:
    return await _do_batch(work, asked, Retry(), JOBS_RETRIED, {})


@answers(JOBS_REPRIORITISE_MANY)
async def reprioritise_jobs(work: Work, asked: JobsReprioritising) -> JobBatch:
    facts: Facts = {"priority": asked.priority}
    return await _do_batch(work, asked, Reprioritise(asked.priority), JOBS_REPRIORITISED, facts)


@dataclass(frozen=True)
class Chosen:
    """The jobs of one batch, how many more match among those looked at, and where the next batch begins."""

    ids: tuple[JobId, ...]
    left: int = 0
    left_capped: bool = False
    next: JobId | None = None


async def _do_batch(work: Work, asked: JobSelection, act: Act, action: str, facts: Facts) -> JobBatch:
    chosen = await _chosen(work, asked, act)
    if asked.dry_run and not asked.ids:
        examples = await jobs_named(work, chosen.ids[:EXAMPLES], lock=False)
        left = chosen.left + len(chosen.ids)
        return JobBatch(done=0, left=left, left_capped=chosen.left_capped, examples=_examples(examples))
    rows = await jobs_named(work, chosen.ids, lock=not asked.dry_run)
    found = await act.sort(work, rows)
    refused = _refusals(chosen.ids, rows, found)
    if asked.dry_run:
        left = len(found.ready)
        answer = JobBatch(done=0, left=left, examples=_examples(found.ready[:EXAMPLES]))
    else:
        done = await act.do(work, found.ready) if found.ready else []
        following = None if chosen.next is None else str(chosen.next)
        answer = JobBatch(done=len(done), left=chosen.left, left_capped=chosen.left_capped, next=following)
    answer = answer.model_copy(
        update={"unchanged": len(found.unchanged), "refused": refused, "refused_count": len(refused)}
    )
    if answer.done:
        await _tell_audit(work, asked, act, action, answer, facts, rows[0])
    return answer


async def _chosen(work: Work, asked: JobSelection, act: Act) -> Chosen:
    named = {name for name in FILTERS if getattr(asked, name) not in (None, ())}
    if bool(asked.ids) is bool(named):
        raise refused_field("ids", "or a filter has to be given, and not both", hint="Such as: status=queued.")
    if asked.ids:
        return Chosen(tuple(dict.fromkeys(asked.ids)))
    if strange := [status.value for status in asked.status if status not in act.states]:
        fitting = ", ".join(sorted(state.value for state in act.states))
        raise refused_field("status", f"can't be {' or '.join(strange)} here", hint=f"It may be: {fitting}.")
    reach = LOOKED_AT_DRY if asked.dry_run else LOOKED_AT
    match = None if asked.filter is None else await job_match(work, asked.filter)
    found = (await work.connection.execute(next_jobs(work.caller.team_id, asked, act, reach, match))).one()
    ids = tuple(sorted((JobId.of(id) for id in found.ids or ()), reverse=True))
    more, all_seen = found.matching - len(ids), found.looked_at < reach
    following = ids[-1] if more else None if all_seen else JobId.of(found.last)
    return Chosen(ids, more, not all_seen, following)


def next_jobs(
    team_id: TeamId, asked: JobSelection, act: Act, reach: int, match: JobMatch | None = None
) -> Select[Any]:
    """Look at the next `reach` jobs in the order of one index, and take from them what matches.

    So the cost of a batch has a bound whatever the filter is, also when next to nothing matches.
    """
    states = tuple(dict.fromkeys(asked.status)) or tuple(sorted(act.states))
    window = _window(team_id, asked, states, reach)
    matches = select(window.c.id)
    for name in SAID_BY_FIELD:
        if (value := getattr(asked, name)) is not None:
            matches = matches.where(window.c[name] == value)
    matches = matches.where(window.c.status.in_([state.value for state in states]))
    if match is not None:
        matches = matches.where(match.holds(window))
    if (narrowed := act.narrowed(team_id, window.c.id)) is not None:
        matches = matches.where(narrowed)
    matching = matches.cte("matching")
    batch = select(matching.c.id).order_by(matching.c.id.desc()).limit(asked.batch_size).subquery()
    last = select(window.c.id).order_by(window.c.id).limit(1)
    return select(
        select(func.array_agg(batch.c.id)).scalar_subquery().label("ids"),
        select(func.count()).select_from(matching).scalar_subquery().label("matching"),
        select(func.count()).select_from(window).scalar_subquery().label("looked_at"),
        last.scalar_subquery().label("last"),
    )


def _window(team_id: TeamId, asked: JobSelection, states: Sequence[JobStatus], reach: int) -> CTE:
    """By jobs_collection_idx or jobs_agent_idx where the filter names one, else by jobs_status_idx."""
    below = position(asked.after, JobId) or NEWEST
    filtered = [name for name in SAID_BY_FIELD if getattr(asked, name) is not None]
    looked_at = filtered if asked.filter is None else {*filtered, *LOOKED_AT_BY_FILTERS}
    columns = [jobs.c[name] for name in ("id", "status", *sorted(looked_at))]
    newest = select(*columns).where(jobs.c.team_id == team_id, jobs.c.id < below)
    newest = newest.order_by(jobs.c.id.desc()).limit(reach)
    for name in ("collection_id", "agent_id"):
        if name in filtered:
            return newest.where(jobs.c[name] == getattr(asked, name)).cte("looked_at")
    pages = [newest.where(jobs.c.status == state.value) for state in states]
    if len(pages) == 1:
        return pages[0].cte("looked_at")
    merged = union_all(*(select(page.subquery()) for page in pages)).subquery()
    return select(merged).order_by(merged.c.id.desc()).limit(reach).cte("looked_at")


def _refusals(ids: Sequence[JobId], rows: Sequence[JobRow], found: Sorted) -> tuple[Refusal, ...]:
    known = {row.id for row in rows}
    missing = [(job_id, no_job(job_id)) for job_id in ids if job_id not in known]
    return tuple(Refusal(id=str(job_id), why=error.message) for job_id, error in (*found.refused, *missing))


def _examples(rows: Sequence[JobRow]) -> tuple[JobExample, ...]:
    newest = sorted(rows, key=lambda row: row.id, reverse=True)
    return tuple(JobExample.model_validate(dict(row._mapping)) for row in newest)


async def _tell_audit(
    work: Work, asked: JobSelection, act: Act, action: str, answer: JobBatch, facts: Facts, row: JobRow
) -> None:
    """One row a batch: which jobs were meant and how it went. The story of each job tells the rest."""
    which = asked.model_dump(mode="json", include={*SAID_BY_FIELD})
    which |= {} if asked.filter is None else {"filter": asked.filter}
    counts = {"done": answer.done, "unchanged": answer.unchanged, "refused": answer.refused_count}
    chosen = {"ids": len(asked.ids), "status": ", ".join(asked.status) or None}
    event = AuditEvent(
        action,
        "queue",
        str(work.caller.team_id),
        metadata={**counts, **chosen, **which, **facts},
        reason=act.reason,
    )
    await audit.append(work, event, row.at)

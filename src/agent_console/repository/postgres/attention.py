"""What needs attention: a few of each kind, each found through the index of its own list."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from agent_console.domain.agents import Agent
from agent_console.domain.approvals import ApprovalListed, ApprovalQuery
from agent_console.domain.attention import (
    NOUN_OF,
    RUNS_SINCE_HOURS,
    AttentionItem,
    AttentionKind,
    AttentionQuery,
)
from agent_console.domain.ids import AgentId
from agent_console.domain.jobs import Job, JobQuery
from agent_console.domain.permissions import GRANTS, Permission
from agent_console.domain.records import Page
from agent_console.domain.redact import redact
from agent_console.domain.runs import Run, RunQuery
from agent_console.domain.states import JobStatus, Lifecycle, RunStatus
from agent_console.repository.operations.attention import ATTENTION_LIST
from agent_console.repository.postgres.policy.approval_lists import list_approvals
from agent_console.repository.postgres.queue.jobs import list_jobs
from agent_console.repository.postgres.queue.stats import COUNTED
from agent_console.repository.postgres.registry.agents import agents_in_error
from agent_console.repository.postgres.runs.lists import list_runs
from agent_console.repository.postgres.work import Work, answers

WORDS_MOST = 500

# Agents that have jobs in hand or waiting for them alone, and nobody there who does them: jobs_held_idx and the
# counts of lanes that are bound to one agent lead to them, neither of which grows with the queue or with agents of
# old. One that is in error is told as such. The limits keep the planner from reading whole tables instead.
SILENT = text(f"""
    with {COUNTED}, held as (
        select agent_id, count(*) as jobs
          from (select agent_id from jobs
                 where team_id = :team_id and status in ('assigned', 'running')
                 order by agent_id limit 10000) as capped
         group by agent_id
    ), bound as (
        select l.bound_agent_id as agent_id, sum(c.jobs)::bigint as jobs
          from counts c
          join lanes l on l.team_id = :team_id and l.id = c.lane_id and c.status in ('queued', 'scheduled')
         where l.team_id = :team_id and l.bound_agent_id is not null
         group by l.bound_agent_id
        having sum(c.jobs) > 0
    ), wanted as (
        select agent_id, sum(held)::bigint as held, sum(bound)::bigint as bound
          from (select agent_id, jobs as held, 0 as bound from held
                union all
                select agent_id, 0, jobs from bound) as work
         group by agent_id
    )
    select a.id, a.name, w.held, w.bound,
           case when a.deleted_at is not null then 'deleted'
                when a.revoked_at is not null then 'revoked' end as gone,
           coalesce(a.deleted_at, a.revoked_at, r.last_heartbeat_at) as since
      from wanted w
     cross join lateral (
           select * from agents where team_id = :team_id and id = w.agent_id limit 1) as a
      left join lateral (
           select * from agent_runtime where team_id = :team_id and agent_id = w.agent_id limit 1) as r on true
     where case when a.deleted_at is not null or a.revoked_at is not null then w.bound > 0
                else r.presence in ('offline', 'unknown') and r.lifecycle is distinct from {Lifecycle.ERROR:d} end
     order by since desc nulls last, a.id
     limit :limit + 1
""")  # noqa: S608

SINCE = text(f"select now() - interval '{RUNS_SINCE_HOURS} hours'")


@answers(ATTENTION_LIST)
async def needs_attention(work: Work, query: AttentionQuery) -> Page[AttentionItem]:
    items = [
        *await _dead_letters(work, query.limit),
        *await _agents_in_error(work, query.limit),
        *await _silent_agents(work, query.limit),
    ]
    if Permission.READ_THREADS in GRANTS[work.caller.role]:
        items += [*await _approvals(work, query.limit), *await _timed_out(work, query.limit)]
    return Page[AttentionItem](items=tuple(newest_first(items)))


def newest_first(items: Sequence[AttentionItem]) -> list[AttentionItem]:
    """The newest danger on top; what began nobody knows when stands at the end."""
    known = sorted((item for item in items if item.since), key=_began, reverse=True)
    return [*known, *(item for item in items if item.since is None)]


def _began(item: AttentionItem) -> float:
    return item.since.timestamp() if item.since else 0.0


def _told(kind: AttentionKind, thing_id: object, name: str, **facts: object) -> AttentionItem:
    return AttentionItem.model_validate(
        {"id": str(thing_id), "kind": kind, "noun": NOUN_OF[kind], "name": name} | facts
    )


def _marked(items: Sequence[AttentionItem], more: bool) -> list[AttentionItem]:
    """The last of a kind tells that its own list has more."""
    return [*items[:-1], items[-1].model_copy(update={"more": more})] if items else []


async def _approvals(work: Work, limit: int) -> list[AttentionItem]:
    page: Page[ApprovalListed] = await list_approvals(work, ApprovalQuery(limit=limit))
    found = [
        _told(
            AttentionKind.APPROVAL,
            one.id,
            f"{one.from_agent or one.from_agent_id} → {one.to_agent or one.to_agent_id}",
            since=one.created_at,
            until=one.expires_at,
        )
        for one in page.items
    ]
    return _marked(found, page.next is not None)


async def _dead_letters(work: Work, limit: int) -> list[AttentionItem]:
    page: Page[Job] = await list_jobs(work, JobQuery(status=(JobStatus.DEAD_LETTER,), limit=limit))
    found = [
        _told(AttentionKind.DEAD_LETTER, job.id, job.type, since=job.finished_at, says=_words(job.error_message))
        for job in page.items
    ]
    return _marked(found, page.next is not None)


async def _agents_in_error(work: Work, limit: int) -> list[AttentionItem]:
    wanted = agents_in_error(work.caller.team_id, limit + 1)
    agents = [Agent.model_validate(dict(row)) for row in (await work.connection.execute(wanted)).mappings()]
    found = [
        _told(
            AttentionKind.AGENT_ERROR,
            agent.id,
            agent.name,
            since=agent.lifecycle_changed_at if agent.lifecycle is Lifecycle.ERROR else agent.last_heartbeat_at,
            says=_words(agent.error_message),
        )
        for agent in agents[:limit]
    ]
    return _marked(found, len(agents) > limit)


async def _silent_agents(work: Work, limit: int) -> list[AttentionItem]:
    rows = (await work.connection.execute(SILENT, {"team_id": work.caller.team_id, "limit": limit})).all()
    found = [
        _told(AttentionKind.AGENT_SILENT, AgentId.of(row.id), row.name, since=row.since, says=_left_behind(row))
        for row in rows[:limit]
    ]
    return _marked(found, len(rows) > limit)


def _left_behind(row: Row[Any]) -> str:
    if row.gone is None:
        return f"{row.held} jobs in hand, {row.bound} waiting for it alone"
    return f"{row.gone}, with {row.bound} jobs waiting for it alone: rebind or cancel them"


async def _timed_out(work: Work, limit: int) -> list[AttentionItem]:
    page: Page[Run] = await list_runs(work, RunQuery(status=(RunStatus.TIMEOUT,), limit=limit))
    since = (await work.connection.execute(SINCE)).scalar_one()
    recent = [run for run in page.items if run.ended_at is not None and run.ended_at > since]
    found = [
        _told(
            AttentionKind.RUN_TIMEOUT,
            run.id,
            run.target or str(run.target_agent_id),
            since=run.ended_at,
            says=_words(run.error_message),
        )
        for run in recent
    ]
    return _marked(found, page.next is not None and len(recent) == len(page.items))


def _words(said: str | None) -> str | None:
    return None if said is None else redact(said[:WORDS_MOST])

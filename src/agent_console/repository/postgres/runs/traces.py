"""The tree of a request: every run it led to, and every approval that it waits for."""

from typing import Any
from uuid import UUID

from sqlalchemy import Select, Text, and_, case, cast, extract, func, literal, null, select, union_all

from agent_console.database.tables import agents, approvals, runs
from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.runs import TRACE_ROWS, Trace, TraceAsked, TraceKind, TraceRow, in_tree_order
from agent_console.repository.operations.runs import RUNS_TRACE
from agent_console.repository.postgres.runs.records import no_run, readable_run
from agent_console.repository.postgres.threads.access import may_read, thread_access
from agent_console.repository.postgres.work import Work, answers


def _seconds(since: Any, until: Any) -> Any:
    return extract("epoch", func.coalesce(until, func.now()) - since)


def runs_of_trace(caller: Caller, trace_id: UUID) -> Select[Any]:
    """Served by runs_trace_idx."""
    acting = and_(agents.c.team_id == runs.c.team_id, agents.c.id == runs.c.target_agent_id)
    return (
        select(
            literal(TraceKind.RUN.value).label("kind"),
            func.jsonb_array_length(runs.c.delegation_path).label("depth"),
            runs.c.id.label("run_id"),
            cast(null(), approvals.c.id.type).label("approval_id"),
            runs.c.parent_run_id,
            runs.c.thread_id,
            runs.c.target_agent_id.label("agent_id"),
            agents.c.name.label("agent"),
            cast(runs.c.status, Text).label("status"),
            runs.c.created_at,
            runs.c.started_at,
            runs.c.ended_at,
            case((runs.c.started_at.is_not(None), _seconds(runs.c.started_at, runs.c.ended_at))).label("seconds"),
        )
        .join(agents, acting)
        .where(runs.c.team_id == caller.team_id, runs.c.trace_id == trace_id, may_read(caller, runs.c.thread_id))
        .order_by(runs.c.seq)
        .limit(TRACE_ROWS + 1)
    )


def waits_of_trace(caller: Caller, trace_id: UUID) -> Select[Any]:
    """Served by approvals_trace_idx."""
    asked = and_(agents.c.team_id == approvals.c.team_id, agents.c.id == approvals.c.to_agent_id)
    wanted = (
        select(
            literal(TraceKind.APPROVAL.value).label("kind"),
            func.jsonb_array_length(approvals.c.delegation_path).label("depth"),
            cast(null(), runs.c.id.type).label("run_id"),
            approvals.c.id.label("approval_id"),
            approvals.c.parent_run_id,
            approvals.c.thread_id,
            approvals.c.to_agent_id.label("agent_id"),
            agents.c.name.label("agent"),
            cast(approvals.c.state, Text).label("status"),
            approvals.c.created_at,
            approvals.c.created_at.label("started_at"),
            cast(null(), runs.c.ended_at.type).label("ended_at"),
            _seconds(approvals.c.created_at, None).label("seconds"),
        )
        .join(agents, asked)
        .where(
            approvals.c.team_id == caller.team_id,
            approvals.c.trace_id == trace_id,
            approvals.c.state == "pending",
            approvals.c.expires_at > func.now(),
            may_read(caller, approvals.c.thread_id),
        )
        .order_by(approvals.c.id)
        .limit(TRACE_ROWS + 1)
    )
    if caller.agent_id is not None:
        wanted = wanted.where(approvals.c.from_agent_id == caller.agent_id)
    return wanted


@answers(RUNS_TRACE)
async def show_trace(work: Work, asked: TraceAsked) -> Trace:
    trace_id = await _trace_id(work, asked)
    parts = (runs_of_trace(work.caller, trace_id).subquery(), waits_of_trace(work.caller, trace_id).subquery())
    both = union_all(*(select(part) for part in parts))
    found = [TraceRow.model_validate(dict(row)) for row in (await work.connection.execute(both)).mappings()]
    if not found:
        raise NotFound("There is no such trace that you may read.", hint="List runs: agent-console runs list")
    # An administrator who looks at what is not theirs is written down here as everywhere.
    for thread_id in dict.fromkeys(row.thread_id for row in found):
        await thread_access(work, thread_id)
    found.sort(key=lambda row: row.created_at)
    return Trace(
        trace_id=trace_id,
        items=tuple(in_tree_order(found[:TRACE_ROWS])),
        truncated=len(found) > TRACE_ROWS,
    )


async def _trace_id(work: Work, asked: TraceAsked) -> UUID:
    if asked.trace_id is not None and asked.run_id is None:
        return asked.trace_id
    if asked.run_id is None or asked.trace_id is not None:
        raise Invalid(
            "A trace is asked for by one of two ids.",
            hint="Give a run or a trace id.",
            details={"fields": [{"field": "run_id", "problem": "or trace_id has to be given, and not both"}]},
        )
    run, _ = await readable_run(work, asked.run_id)
    if run.trace_id is None:
        raise no_run(asked.run_id)
    return run.trace_id

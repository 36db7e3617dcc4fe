"""What has to be known before a delegation is decided, gathered under the locks that keep it true."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, case, func, select, text

from agent_console.database.tables import a2a_routes, agents, approvals, runs
from agent_console.domain.delegation import DelegationFacts, NewDelegation, RouteFacts, request_digest
from agent_console.domain.ids import AgentId, ApprovalId, RouteId, RunId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.states import ApprovalState, RunStatus
from agent_console.domain.team_settings import (
    DUPLICATE_WINDOW_SECONDS,
    MAX_HOPS,
    RUNS_PER_THREAD,
    WAITING_PER_AGENT,
)
from agent_console.repository.postgres.database_time import seconds
from agent_console.repository.postgres.runs.beginning import new_trace, open_runs
from agent_console.repository.postgres.team_settings import setting_values
from agent_console.repository.postgres.threads.access import Access
from agent_console.repository.postgres.work import Work

ONE_AFTER_THE_OTHER = text(
    "select pg_advisory_xact_lock(hashtext('agent_console.approvals'), hashtext(:agent_id))"
)
UNFINISHED = (RunStatus.QUEUED.value, RunStatus.RUNNING.value)


@dataclass(frozen=True)
class Pair:
    """The two agents, held so that neither is revoked or deleted before this has ended."""

    from_agent_id: AgentId
    from_name: str
    to_agent_id: AgentId
    to_name: str | None
    from_able: bool
    to_able: bool


@dataclass(frozen=True)
class Parent:
    run_id: RunId
    trace_id: UUID
    path: tuple[AgentId, ...]


@dataclass(frozen=True)
class Earlier:
    """What an equal request led to."""

    run_id: RunId | None
    approval_id: ApprovalId | None


@dataclass(frozen=True)
class Route:
    id: RouteId
    policy: RoutePolicy
    version: int


@dataclass(frozen=True)
class Gathered:
    """The facts to decide by, and what is needed to act on the decision."""

    facts: DelegationFacts
    parent: Parent | None
    trace_id: UUID
    digest: str
    earlier: Earlier | None
    route: Route | None


async def locked_pair(work: Work, from_agent_id: AgentId, to_agent_id: AgentId) -> Pair:
    """In the order of their ids, as the queue locks them. Whoever revokes or deletes one of them waits."""
    wanted: Select[Any] = (
        select(agents.c.id, agents.c.name, agents.c.revoked_at, agents.c.deleted_at)
        .where(agents.c.team_id == work.caller.team_id, agents.c.id.in_((from_agent_id, to_agent_id)))
        .order_by(agents.c.id)
        .with_for_update(read=True)
    )
    rows: Sequence[Row[Any]] = (await work.connection.execute(wanted)).all()
    found = {row.id: row for row in rows}
    asking, asked = found.get(from_agent_id), found.get(to_agent_id)
    return Pair(
        from_agent_id=from_agent_id,
        from_name="" if asking is None else asking.name,
        to_agent_id=to_agent_id,
        to_name=None if asked is None else asked.name,
        from_able=_able(asking),
        to_able=_able(asked),
    )


def _able(agent: Row[Any] | None) -> bool:
    return agent is not None and agent.revoked_at is None and agent.deleted_at is None


async def locked_route(work: Work, from_agent_id: AgentId, to_agent_id: AgentId) -> Route | None:
    """Served by a2a_routes_pair_uq. Nobody edits it before this has ended."""
    wanted = (
        select(a2a_routes.c.id, a2a_routes.c.policy, a2a_routes.c.version)
        .where(
            a2a_routes.c.team_id == work.caller.team_id,
            a2a_routes.c.from_agent_id == from_agent_id,
            a2a_routes.c.to_agent_id == to_agent_id,
        )
        .with_for_update(read=True)
    )
    found = (await work.connection.execute(wanted)).first()
    return None if found is None else Route(found.id, RoutePolicy(found.policy), found.version)


async def gather(work: Work, access: Access, asked: NewDelegation, pair: Pair) -> Gathered:
    limits = await setting_values(
        work.connection,
        work.caller.team_id,
        *(MAX_HOPS, RUNS_PER_THREAD, WAITING_PER_AGENT, DUPLICATE_WINDOW_SECONDS),
    )
    parent = await parent_run(work, pair.from_agent_id, asked.thread_id, asked.parent_run_id)
    digest = request_digest(pair.from_agent_id, asked.to, asked.thread_id, asked.input)
    earlier = await _earlier(work, access, digest, limits[DUPLICATE_WINDOW_SECONDS])
    route = await locked_route(work, pair.from_agent_id, asked.to)
    facts = DelegationFacts(
        to_agent_id=asked.to,
        path=(*(() if parent is None else parent.path), pair.from_agent_id),
        route=None if route is None else RouteFacts(route.policy, route.version),
        max_hops=limits[MAX_HOPS],
        runs_per_thread=limits[RUNS_PER_THREAD],
        open_runs=await open_runs(work, access),
        waiting=await _waiting_in_turn(work, pair.from_agent_id, route),
        waiting_per_agent=limits[WAITING_PER_AGENT],
        target_able=pair.to_able,
        parent_fits=parent is not None or asked.parent_run_id is None,
        repeats=earlier is not None,
    )
    trace_id = new_trace() if parent is None else parent.trace_id
    return Gathered(facts, parent, trace_id, digest, earlier, route)


async def _waiting_in_turn(work: Work, agent_id: AgentId, route: Route | None) -> int:
    """Exact: of the requests that an agent makes at once, in whatever threads, one is counted after the other.

    Taken last of all locks, and only by who may have to ask a person.
    """
    if route is None or route.policy is not RoutePolicy.REQUIRES_HUMAN_APPROVAL:
        return 0
    await work.connection.execute(ONE_AFTER_THE_OTHER, {"agent_id": str(agent_id)})
    return await waiting_requests(work, agent_id)


async def waiting_requests(work: Work, agent_id: AgentId) -> int:
    """Of this agent, for a person. Served by approvals_pair_idx."""
    wanted = select(func.count()).where(
        approvals.c.team_id == work.caller.team_id,
        approvals.c.from_agent_id == agent_id,
        approvals.c.state == ApprovalState.PENDING.value,
        approvals.c.expires_at > func.now(),
    )
    counted: int = (await work.connection.execute(wanted)).scalar_one()
    return counted


async def parent_run(
    work: Work, agent_id: AgentId, thread_id: ThreadId | None, named: RunId | None = None
) -> Parent | None:
    """The run that an agent asks for. One that has a run and names none is given it: a path can't be laundered.

    Served by the primary key or by runs_target_status_idx. Of several: one of the same thread, then one that runs,
    then the newest.
    """
    wanted: Select[Any] = select(runs.c.id, runs.c.trace_id, runs.c.delegation_path).where(
        runs.c.team_id == work.caller.team_id,
        runs.c.target_agent_id == agent_id,
        runs.c.status.in_(UNFINISHED),
    )
    if named is not None:
        wanted = wanted.where(runs.c.id == named)
    same_thread = case((runs.c.thread_id == thread_id, 0), else_=1)
    runs_now = case((runs.c.status == RunStatus.RUNNING.value, 0), else_=1)
    found = (
        await work.connection.execute(wanted.order_by(same_thread, runs_now, runs.c.seq.desc()).limit(1))
    ).first()
    if found is None:
        return None
    path = tuple(AgentId.parse(agent) for agent in found.delegation_path)
    return Parent(found.id, found.trace_id or new_trace(), path)


async def _earlier(work: Work, access: Access, digest: str, window: int) -> Earlier | None:
    """Served by runs_request_idx and approvals_request_idx. Exact, since the thread is locked."""
    since = func.now() - seconds(window)
    asked = (
        select(approvals.c.id, approvals.c.run_id)
        .where(
            approvals.c.team_id == work.caller.team_id,
            approvals.c.thread_id == access.thread_id,
            approvals.c.request_digest == digest,
            approvals.c.created_at > since,
        )
        .order_by(approvals.c.id.desc())
        .limit(1)
    )
    if (found := (await work.connection.execute(asked)).first()) is not None:
        return Earlier(found.run_id, ApprovalId.of(found.id))
    begun = (
        select(runs.c.id)
        .where(
            runs.c.team_id == work.caller.team_id,
            runs.c.thread_id == access.thread_id,
            runs.c.request_digest == digest,
            runs.c.created_at > since,
        )
        .order_by(runs.c.seq.desc())
        .limit(1)
    )
    run_id = (await work.connection.execute(begun)).scalar()
    return None if run_id is None else Earlier(RunId.of(run_id), None)


async def asked_before(work: Work, asked: NewDelegation, agent_id: AgentId) -> tuple[bool, Earlier | None]:
    """What the same key led to, and whether it was the same request. Served by the two idempotency keys."""
    digest = request_digest(agent_id, asked.to, asked.thread_id, asked.input)
    team_id, key = work.caller.team_id, asked.idempotency_key
    waiting = select(approvals.c.id, approvals.c.run_id, approvals.c.request_digest).where(
        approvals.c.team_id == team_id, approvals.c.idempotency_key == key
    )
    if (found := (await work.connection.execute(waiting)).first()) is not None:
        return found.request_digest == digest, Earlier(found.run_id, ApprovalId.of(found.id))
    begun = select(runs.c.id, runs.c.request_digest).where(
        runs.c.team_id == team_id, runs.c.idempotency_key == key
    )
    if (run := (await work.connection.execute(begun)).first()) is not None:
        return run.request_digest == digest, Earlier(RunId.of(run.id), None)
    return True, None

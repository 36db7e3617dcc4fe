"""What would happen if one agent asked another now: the facts of an imagined request, and the decision on them."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, case, select

from agent_console.database.tables import a2a_routes, agents, runs
from agent_console.domain.delegation import DelegationFacts, Outcome, RouteFacts, Rule, Verdict, decide
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import AgentId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.permissions import Role
from agent_console.domain.route_replays import RouteExplanation, RouteQuestion
from agent_console.domain.states import RunStatus
from agent_console.domain.team_settings import MAX_HOPS, RUNS_PER_THREAD, WAITING_PER_AGENT
from agent_console.repository.operations.routes import ROUTES_EXPLAIN
from agent_console.repository.postgres.policy.delegation_facts import waiting_requests
from agent_console.repository.postgres.registry.agent_words import NamedAgent, pair_called
from agent_console.repository.postgres.runs.beginning import open_runs
from agent_console.repository.postgres.runs.records import readable_run
from agent_console.repository.postgres.team_settings import setting_value
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.work import Work, answers

REVOKED = Verdict(Outcome.BLOCKED, Rule.ACCESS, None, "The asking agent is revoked; nobody listens to it.")


@dataclass(frozen=True)
class _Setting:
    """Where it would ask: in which thread, on whose behalf."""

    thread: Access | None
    path: tuple[AgentId, ...]
    parent_fits: bool


@answers(ROUTES_EXPLAIN)
async def explain_route(work: Work, asked: RouteQuestion) -> RouteExplanation:
    of, to = await pair_called(work, asked.from_agent, asked.to_agent)
    revoked = await _revoked(work, of, to)
    setting = await _setting(work, asked, of.id)
    route = await _route(work, of.id, to.id)
    facts = DelegationFacts(
        to_agent_id=to.id,
        path=setting.path,
        route=None if route is None else RouteFacts(RoutePolicy(route.policy), route.version),
        max_hops=await setting_value(work.connection, work.caller.team_id, MAX_HOPS),
        runs_per_thread=await setting_value(work.connection, work.caller.team_id, RUNS_PER_THREAD),
        open_runs=0 if setting.thread is None else await open_runs(work, setting.thread),
        waiting=await waiting_requests(work, of.id),
        waiting_per_agent=await setting_value(work.connection, work.caller.team_id, WAITING_PER_AGENT),
        may_write=setting.thread is None or await _may_write(work, of, setting.thread.thread_id),
        target_able=to.id not in revoked,
        parent_fits=setting.parent_fits,
    )
    verdict = REVOKED if of.id in revoked else decide(facts)
    unknown = (Rule.DUPLICATE,) if setting.thread else (Rule.ACCESS, Rule.DUPLICATE, Rule.RUNS_PER_THREAD)
    return RouteExplanation(
        outcome=verdict.outcome,
        rule=verdict.rule,
        why=verdict.sentence,
        from_agent_id=of.id,
        from_agent=of.name,
        to_agent_id=to.id,
        to_agent=to.name,
        policy=None if route is None else RoutePolicy(route.policy),
        version=None if route is None else route.version,
        path=setting.path,
        not_asked=unknown,
    )


async def _revoked(work: Work, *pair: NamedAgent) -> set[AgentId]:
    wanted = select(agents.c.id).where(
        agents.c.team_id == work.caller.team_id,
        agents.c.id.in_([agent.id for agent in pair]),
        agents.c.revoked_at.is_not(None),
    )
    return {row.id for row in await work.connection.execute(wanted)}


async def _route(work: Work, of: AgentId, to: AgentId) -> Row[Any] | None:
    wanted: Select[Any] = select(a2a_routes.c.policy, a2a_routes.c.version).where(
        a2a_routes.c.team_id == work.caller.team_id,
        a2a_routes.c.from_agent_id == of,
        a2a_routes.c.to_agent_id == to,
    )
    found: Row[Any] | None = (await work.connection.execute(wanted)).first()
    return found


async def _setting(work: Work, asked: RouteQuestion, of: AgentId) -> _Setting:
    """Whoever asks has to be able to read the thread and the run the question is about."""
    thread = None if asked.thread_id is None else await thread_access(work, asked.thread_id)
    if asked.parent_run_id is None:
        return _Setting(thread, (*await _path_so_far(work, of, asked.thread_id), of), parent_fits=True)
    parent, its_thread = await readable_run(work, asked.parent_run_id)
    fits = parent.target_agent_id == of and parent.ended_at is None
    return _Setting(thread or its_thread, (*parent.delegation_path, of), fits)


async def _path_so_far(work: Work, of: AgentId, thread_id: ThreadId | None) -> tuple[AgentId, ...]:
    """An agent that works on a run asks for that run, whether it says so or not; chosen as delegating does.

    Served by runs_target_status_idx.
    """
    elsewhere = case((runs.c.thread_id == thread_id, 0), else_=1)
    not_yet = case((runs.c.status == RunStatus.RUNNING.value, 0), else_=1)
    wanted = (
        select(runs.c.delegation_path)
        .where(
            runs.c.team_id == work.caller.team_id,
            runs.c.target_agent_id == of,
            runs.c.status.in_((RunStatus.QUEUED.value, RunStatus.RUNNING.value)),
        )
        .order_by(elsewhere, not_yet, runs.c.seq.desc())
        .limit(1)
    )
    found = (await work.connection.execute(wanted)).scalar()
    return tuple(AgentId.parse(agent) for agent in found or ())


async def _may_write(work: Work, agent: NamedAgent, thread_id: ThreadId) -> bool:
    """The same question that is asked when the agent itself comes."""
    itself = Caller(
        team_id=work.caller.team_id,
        team=work.caller.team,
        user_id=work.caller.user_id,
        name=agent.name,
        role=Role.AGENT,
        auth_source=AuthSource.API_KEY,
        agent_id=agent.id,
    )
    try:
        (await thread_access(Work(work.connection, itself), thread_id)).require_write()
    except (NotFound, Forbidden, Conflict):
        return False
    return True

"""What would happen if one agent asked another now: the facts of an imagined request, and the decision on them."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, select

from agent_console.database.tables import a2a_routes, agents
from agent_console.domain.delegation import DelegationFacts, Outcome, RouteFacts, Rule, Verdict, decide
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import AgentId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.permissions import Role
from agent_console.domain.route_replays import RouteExplanation, RouteQuestion
from agent_console.domain.team_settings import MAX_HOPS, RUNS_PER_THREAD, WAITING_PER_AGENT
from agent_console.repository.operations.routes import ROUTES_EXPLAIN
from agent_console.repository.postgres.policy.delegation_facts import parent_run, waiting_requests
from agent_console.repository.postgres.registry.agent_words import NamedAgent, pair_called
from agent_console.repository.postgres.runs.beginning import open_runs
from agent_console.repository.postgres.runs.records import readable_run
from agent_console.repository.postgres.team_settings import setting_values
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.work import Work, answers

REVOKED = Verdict(Outcome.BLOCKED, Rule.ACCESS, None, "The asking agent is revoked; nobody listens to it.")


@dataclass(frozen=True)
class _Occasion:
    """Where it would ask: in which thread, on whose behalf."""

    thread: Access | None
    path: tuple[AgentId, ...]
    parent_fits: bool


@answers(ROUTES_EXPLAIN)
async def explain_route(work: Work, asked: RouteQuestion) -> RouteExplanation:
    of, to = await pair_called(work, asked.from_agent, asked.to_agent)
    revoked = await _revoked(work, of, to)
    occasion = await _occasion(work, asked, of.id)
    limits = await setting_values(
        work.connection, work.caller.team_id, MAX_HOPS, RUNS_PER_THREAD, WAITING_PER_AGENT
    )
    route = await _route(work, of.id, to.id)
    facts = DelegationFacts(
        to_agent_id=to.id,
        path=occasion.path,
        route=None if route is None else RouteFacts(RoutePolicy(route.policy), route.version),
        max_hops=limits[MAX_HOPS],
        runs_per_thread=limits[RUNS_PER_THREAD],
        open_runs=0 if occasion.thread is None else await open_runs(work, occasion.thread),
        waiting=await waiting_requests(work, of.id),
        waiting_per_agent=limits[WAITING_PER_AGENT],
        may_write=occasion.thread is None or await _may_write(work, of, occasion.thread.thread_id),
        target_able=to.id not in revoked,
        parent_fits=occasion.parent_fits,
    )
    verdict = REVOKED if of.id in revoked else decide(facts)
    unknown = (Rule.DUPLICATE,) if occasion.thread else (Rule.ACCESS, Rule.DUPLICATE, Rule.RUNS_PER_THREAD)
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
        path=occasion.path,
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


async def _occasion(work: Work, asked: RouteQuestion, of: AgentId) -> _Occasion:
    """Whoever asks has to be able to read the thread and the run the question is about."""
    thread = None if asked.thread_id is None else await thread_access(work, asked.thread_id)
    if asked.parent_run_id is None:
        working_on = await parent_run(work, of, asked.thread_id)
        return _Occasion(thread, (*(() if working_on is None else working_on.path), of), parent_fits=True)
    parent, its_thread = await readable_run(work, asked.parent_run_id)
    fits = parent.target_agent_id == of and parent.ended_at is None
    return _Occasion(thread or its_thread, (*parent.delegation_path, of), fits)


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

"""Changing agents: names, limits, draining, and the two ways in which their work here ends."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, func, literal, or_, select, update

from agent_console.database.tables import (
    a2a_routes,
    agent_connectors,
    agent_runtime,
    agents,
    collections,
    thread_participants,
    users,
)
from agent_console.domain.agent_changes import (
    AGENT_COUNT_CAP,
    AgentConfiguration,
    AgentCount,
    AgentCountQuery,
    AgentDraining,
    AgentLimit,
    AgentRenaming,
    AgentRevocation,
)
from agent_console.domain.agents import Agent, AgentAsked
from agent_console.domain.audit import AuditEvent, Fact
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import AgentId
from agent_console.domain.job_acts import WAITING
from agent_console.domain.kinds import ParticipantType
from agent_console.domain.secrets import Secret
from agent_console.domain.states import JobStatus, Lifecycle
from agent_console.repository.operations.agents import (
    AGENT_CONFIGURED,
    AGENT_DELETED,
    AGENT_DRAINED,
    AGENT_LIMITED,
    AGENT_RENAMED,
    AGENT_RESUMED,
    AGENT_REVOKED,
    AGENTS_CONFIGURE,
    AGENTS_COUNT,
    AGENTS_DELETE,
    AGENTS_DRAIN,
    AGENTS_LIMIT,
    AGENTS_RENAME,
    AGENTS_RESUME,
    AGENTS_REVOKE,
)
from agent_console.repository.operations.threads import RIGHTS_REVOKED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.policy.approval_endings import withdraw_for_agent
from agent_console.repository.postgres.policy.route_changes import Change, standing, write
from agent_console.repository.postgres.queue.release import close_sessions, release_jobs
from agent_console.repository.postgres.queue.stats import jobs_bound_to
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.registry.agents import get_agent
from agent_console.repository.postgres.registry.worker_tokens import end_worker_tokens
from agent_console.repository.postgres.work import Work, answers

DELETED = "agent deleted"
DELETABLE = (Lifecycle.STOPPED, Lifecycle.ERROR)


async def locked_agent(work: Work, agent_id: AgentId, *, refuse_references: bool = False) -> Row[Any]:
    """The living agent and its state at run time, held until the transaction ends.

    With `refuse_references` nobody can begin to refer to it meanwhile, as a new collection would.
    """
    wanted: Select[Any] = (
        select(
            *(agents.c[name] for name in ("id", "name", "owner_user_id", "system_user_id", "hosted")),
            *(agents.c[name] for name in ("max_concurrent_jobs", "connector_ref", "profile", "worker_id")),
            *(agents.c[name] for name in ("hostname", "os_info", "version")),
            *(agents.c[name] for name in ("drained_at", "drain_reason", "revoked_at")),
            *(agent_runtime.c[name] for name in ("presence", "lifecycle", "capabilities")),
            func.now().label("at"),
        )
        .join(agent_runtime, agent_runtime.c.agent_id == agents.c.id)
        .where(
            agents.c.team_id == work.caller.team_id,
            agent_runtime.c.team_id == work.caller.team_id,
            agents.c.id == agent_id,
            agents.c.deleted_at.is_(None),
        )
        .with_for_update(of=(agents, agent_runtime), key_share=not refuse_references)
    )
    found: Row[Any] | None = (await work.connection.execute(wanted)).first()
    if found is None:
        raise no_agent(agent_id)
    return found


async def shown(work: Work, agent_id: AgentId) -> Agent:
    return await get_agent(work, AgentAsked(agent_id=agent_id))


async def tell(
    work: Work,
    action: str,
    agent_id: AgentId,
    at: datetime,
    facts: Mapping[str, Fact] | None = None,
    reason: str | None = None,
) -> None:
    event = AuditEvent(action, "agent", str(agent_id), metadata=facts or {}, reason=reason)
    await audit.append(work, event, at)
    work.announce(Topic.AGENTS, agent_id)


async def change(work: Work, agent_id: AgentId, **values: object) -> None:
    """Write columns of the agent's own row, and who wrote them when."""
    await work.connection.execute(
        update(agents)
        .where(agents.c.team_id == work.caller.team_id, agents.c.id == agent_id)
        .values(**values, updated_at=func.now(), updated_by_user_id=work.caller.user_id)
    )


async def release(work: Work, agent_id: AgentId, reason: str) -> int:
    """Give its jobs back at no cost: none of this is the jobs' fault."""
    released = await release_jobs(work.connection, work.caller.team_id, [agent_id], reason, costs_attempt=False)
    for job in released:
        work.announce(Topic.JOBS, job.job_id)
        if job.status is JobStatus.QUEUED:
            work.announce(Topic.WORK, job.place)
    return len(released)


async def _waiting(work: Work, agent_id: AgentId) -> int:
    """Jobs that wait for it alone, and will wait for ever if nobody sees to them."""
    return await jobs_bound_to(work.connection, work.caller.team_id, agent_id, WAITING)


async def close(work: Work, agent_id: AgentId, reason: str) -> int:
    closed = await close_sessions(work.connection, work.caller.team_id, agent_id, reason)
    for session_id in closed:
        work.announce(Topic.SESSIONS, session_id)
    return len(closed)


@answers(AGENTS_COUNT)
async def count_agents(work: Work, query: AgentCountQuery) -> AgentCount:
    """Served by agents_owner_idx or agents_team_idx, up to the cap."""
    living = select(literal(1)).where(agents.c.team_id == work.caller.team_id, agents.c.deleted_at.is_(None))
    if query.owner is not None:
        living = living.where(agents.c.owner_user_id == query.owner)
    capped = living.limit(AGENT_COUNT_CAP + 1).subquery()
    found = (await work.connection.execute(select(func.count()).select_from(capped))).scalar_one()
    return AgentCount(count=min(found, AGENT_COUNT_CAP), capped=found > AGENT_COUNT_CAP)


@answers(AGENTS_RENAME)
async def rename_agent(work: Work, asked: AgentRenaming) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if agent.name != asked.name:
        await change(work, asked.agent_id, name=asked.name)
        await name_system_user(work, agent.system_user_id, asked.name)
        await tell(work, AGENT_RENAMED, asked.agent_id, agent.at)
    return await shown(work, asked.agent_id)


async def name_system_user(work: Work, user_id: object, name: str) -> None:
    await work.connection.execute(
        update(users)
        .where(users.c.team_id == work.caller.team_id, users.c.id == user_id)
        .values(full_name=f"Agent: {name}", updated_at=func.now(), updated_by_user_id=work.caller.user_id)
    )


@answers(AGENTS_DRAIN)
async def drain_agent(work: Work, asked: AgentDraining) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if agent.revoked_at is not None:
        raise Conflict(
            f"Agent {asked.agent_id} is revoked and takes no jobs anyway.",
            hint="Look at it: agent-console agents get agt_…",
        )
    jobs = await release(work, asked.agent_id, f"drained: {asked.reason}") if asked.release else 0
    if agent.drained_at is None or agent.drain_reason != asked.reason or jobs:
        began = func.coalesce(agents.c.drained_at, func.now())
        by = {"drained_by_user_id": work.caller.user_id}
        await change(work, asked.agent_id, drained_at=began, drain_reason=asked.reason, **by)
        await tell(work, AGENT_DRAINED, asked.agent_id, agent.at, {"jobs": jobs}, asked.reason)
    return await shown(work, asked.agent_id)


@answers(AGENTS_RESUME)
async def resume_agent(work: Work, asked: AgentAsked) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if agent.drained_at is not None:
        await change(work, asked.agent_id, drained_at=None, drain_reason=None, drained_by_user_id=None)
        await tell(work, AGENT_RESUMED, asked.agent_id, agent.at)
    return await shown(work, asked.agent_id)


@answers(AGENTS_LIMIT)
async def limit_agent(work: Work, asked: AgentLimit) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if agent.max_concurrent_jobs != asked.max_concurrent_jobs:
        await change(work, asked.agent_id, max_concurrent_jobs=asked.max_concurrent_jobs)
        facts = {"max_concurrent_jobs": asked.max_concurrent_jobs}
        await tell(work, AGENT_LIMITED, asked.agent_id, agent.at, facts)
    return await shown(work, asked.agent_id)


@answers(AGENTS_CONFIGURE)
async def configure_agent(work: Work, asked: AgentConfiguration) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    wanted: dict[str, object] = {}
    if asked.connector_ref not in (None, agent.connector_ref):
        wanted["connector_ref"] = asked.connector_ref
    if asked.profile is not None and asked.profile != agent.profile:
        wanted["profile"] = asked.profile
    if wanted:
        await change(work, asked.agent_id, **wanted)
        facts = {name: name in wanted for name in ("connector_ref", "profile")}
        await tell(work, AGENT_CONFIGURED, asked.agent_id, agent.at, facts)
    return await shown(work, asked.agent_id)


@answers(AGENTS_REVOKE)
async def revoke_agent(work: Work, asked: AgentRevocation) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if agent.revoked_at is None:
        by = {"revoked_by_user_id": work.caller.user_id}
        await change(work, asked.agent_id, revoked_at=func.now(), revocation_reason=asked.reason, **by)
        facts = {
            "sessions": await close(work, asked.agent_id, "the agent was revoked"),
            "jobs": await release(work, asked.agent_id, "the agent was revoked"),
            "waiting": await _waiting(work, asked.agent_id),
        }
        await withdraw_for_agent(work, asked.agent_id, agent.at)
        await tell(work, AGENT_REVOKED, asked.agent_id, agent.at, facts, asked.reason)
    return await shown(work, asked.agent_id)


@answers(AGENTS_DELETE)
async def delete_agent(work: Work, asked: AgentAsked) -> Agent:
    """The row stays, so that history keeps its name; everything that lets it act is gone."""
    agent = await locked_agent(work, asked.agent_id, refuse_references=True)
    await _require_deletable(work, agent)
    last = await shown(work, asked.agent_id)
    # Before the routes, whose end would close what waits in the name of a policy that nobody changed.
    await withdraw_for_agent(work, asked.agent_id, agent.at)
    facts = {
        "sessions": await close(work, asked.agent_id, "the agent was deleted"),
        "jobs": await release(work, asked.agent_id, "the agent was deleted"),
        "waiting": await _waiting(work, asked.agent_id),
        "routes": await _remove_routes(work, asked.agent_id, agent.at),
        "memberships": await _leave_threads(work, asked.agent_id, agent.at),
    }
    await end_worker_tokens(work, agent.worker_id)
    team_id = work.caller.team_id
    await work.connection.execute(
        delete(agent_connectors).where(
            agent_connectors.c.team_id == team_id, agent_connectors.c.agent_id == asked.agent_id
        )
    )
    await change(
        work,
        asked.agent_id,
        deleted_at=func.now(),
        # Nobody has ever seen this key: even a forgotten check would let nobody in.
        api_key_hash=Secret.mint(team_id, asked.agent_id).hash,
        previous_key_hash=None,
        previous_key_ends_at=None,
    )
    # After the change, which takes it out of the count of the pool. Whoever looks for the living meets no dead.
    await work.connection.execute(
        delete(agent_runtime).where(agent_runtime.c.team_id == team_id, agent_runtime.c.agent_id == asked.agent_id)
    )
    await tell(work, AGENT_DELETED, asked.agent_id, agent.at, facts)
    return last


async def _require_deletable(work: Work, agent: Row[Any]) -> None:
    bound = select(func.count()).where(
        collections.c.team_id == work.caller.team_id,
        collections.c.bound_agent_id == agent.id,
        collections.c.deleted_at.is_(None),
    )
    if count := (await work.connection.execute(bound)).scalar_one():
        noun = "collection is" if count == 1 else "collections are"
        raise Conflict(
            f"{count} {noun} bound to agent {agent.id}.",
            hint="Bind them to another agent or delete them first.",
            details={"bound_collections": count},
        )
    if agent.hosted and agent.lifecycle not in DELETABLE:
        raise Conflict(
            f"Agent {agent.id} is {Lifecycle(agent.lifecycle).name.lower()}.",
            hint="A hosted agent can be deleted once it is stopped or in error.",
            details={"lifecycle": agent.lifecycle},
        )


async def _remove_routes(work: Work, agent_id: AgentId, at: datetime) -> int:
    """Its routes go as any route does: the history of each gets a last version, and the trail an act."""
    own = or_(a2a_routes.c.from_agent_id == agent_id, a2a_routes.c.to_agent_id == agent_id)
    routes = await standing(work, own)
    await write(work, [Change(route.pair, route, None) for route in routes], at, DELETED)
    return len(routes)


async def _leave_threads(work: Work, agent_id: AgentId, at: datetime) -> int:
    """Each thread's own trail tells that it left."""
    gone = (
        delete(thread_participants)
        .where(
            thread_participants.c.team_id == work.caller.team_id,
            thread_participants.c.participant_type == ParticipantType.AGENT.value,
            thread_participants.c.agent_id == agent_id,
        )
        .returning(thread_participants.c.id, thread_participants.c.thread_id)
    )
    left = (await work.connection.execute(gone)).all()
    facts = {"user_id": None, "agent_id": str(agent_id)}
    events = [
        AuditEvent(RIGHTS_REVOKED, "participant", str(row.id), facts, reason=DELETED, thread_id=row.thread_id)
        for row in left
    ]
    await audit.append_all(work, events, at)
    for row in left:
        work.announce(Topic.THREADS, row.thread_id)
    return len(left)

"""Agents and the pool, as the database knows them."""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, literal, or_, select, text

from agent_console.database.tables import agent_connectors, agent_runtime, agents, jobs, users
from agent_console.domain.agents import OFFLINE_AFTER_SECONDS, Agent, AgentAsked, AgentQuery, PoolStatus
from agent_console.domain.errors import NotFound
from agent_console.domain.ids import AgentId, TeamId
from agent_console.domain.records import Nothing, Page
from agent_console.domain.states import JOB_HELD, Presence
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST, POOL_STATUS
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.work import Work, answers

owner = users.alias("owner")
creator = users.alias("creator")

SILENT = agent_runtime.c.last_heartbeat_at < func.now() - text(f"interval '{OFFLINE_AFTER_SECONDS} seconds'")

# What is shown: revoked lies on top, and silence counts before a sweep has written it down.
STATUS = case(
    (agents.c.revoked_at.is_not(None), literal(Presence.REVOKED.value)),
    (and_(agent_runtime.c.presence.in_(("online", "error")), SILENT), literal(Presence.OFFLINE.value)),
    else_=agent_runtime.c.presence,
)
HELD_JOBS = (
    select(func.count())
    .select_from(jobs)
    .where(
        jobs.c.team_id == agents.c.team_id,
        jobs.c.agent_id == agents.c.id,
        jobs.c.status.in_(sorted(JOB_HELD)),
    )
    .scalar_subquery()
)
CONNECTORS = (
    select(
        func.coalesce(
            func.array_agg(agent_connectors.c.connector_id),
            text("array[]::uuid[]"),
        )
    )
    .where(agent_connectors.c.team_id == agents.c.team_id, agent_connectors.c.agent_id == agents.c.id)
    .scalar_subquery()
)


def status_is(status: Presence) -> ColumnElement[bool]:
    return STATUS.in_((status.value,))


def living_agents(team_id: TeamId) -> Select[Any]:
    """Agents with all that is shown of them: a few look-ups by key for each row of a page."""
    shown = (
        *(agents.c[name] for name in Agent.model_fields if name in agents.c),
        *(agent_runtime.c[name] for name in ("last_heartbeat_at", "capabilities", "metrics", "lifecycle")),
        case((status_is(Presence.ERROR), agent_runtime.c.error_message)).label("error_message"),
        STATUS.label("status"),
        owner.c.full_name.label("owner"),
        creator.c.full_name.label("created_by"),
        HELD_JOBS.label("current_jobs"),
        CONNECTORS.label("connectors"),
    )
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)
    owned = and_(owner.c.team_id == agents.c.team_id, owner.c.id == agents.c.owner_user_id)
    made = and_(creator.c.team_id == agents.c.team_id, creator.c.id == agents.c.created_by_user_id)
    return (
        select(*shown)
        .select_from(agents.join(agent_runtime, runtime).join(owner, owned).join(creator, made))
        .where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None))
    )


def has_capability(demand: str) -> ColumnElement[bool]:
    """A tool asked for without a version is also found with one."""
    exact = agent_runtime.c.capabilities.op("?", is_comparison=True)(demand)
    if not demand.startswith("tool:") or demand.count(":") > 1:
        return exact
    item = func.jsonb_array_elements_text(agent_runtime.c.capabilities).column_valued("capability")
    versioned = exists(select(item).where(func.starts_with(item, f"{demand}:")))
    return or_(exact, versioned)


@answers(AGENTS_LIST)
async def list_agents(work: Work, query: AgentQuery) -> Page[Agent]:
    wanted = living_agents(work.caller.team_id).order_by(agents.c.id).limit(query.limit + 1)
    if (after := position(query.after, AgentId)) is not None:
        wanted = wanted.where(agents.c.id > after)
    if query.status is not None:
        wanted = wanted.where(status_is(query.status))
    if query.owner is not None:
        wanted = wanted.where(agents.c.owner_user_id == query.owner)
    if query.capability is not None:
        wanted = wanted.where(has_capability(query.capability.strip()))
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Agent], rows, query.limit, AgentId)


@answers(AGENTS_GET)
async def get_agent(work: Work, asked: AgentAsked) -> Agent:
    wanted = living_agents(work.caller.team_id).where(agents.c.id == asked.agent_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise NotFound(f"There is no agent {asked.agent_id}.", hint="List them: agent-console agents list")
    return Agent.model_validate(dict(found))


# Served by agent_runtime_presence_idx and jobs_held_idx: what is online and what is held, never the tables.
POOL = text(f"""
    with held as (
        select agent_id, count(*) as jobs
          from jobs
         where team_id = :team_id and status in ('assigned', 'running')
         group by agent_id
    ), living as (
        select r.agent_id,
               case when r.presence in ('online', 'error')
                     and r.last_heartbeat_at < now() - interval '{OFFLINE_AFTER_SECONDS} seconds'
                    then 'offline' else r.presence end as presence
          from agent_runtime r
          join agents a on a.team_id = r.team_id and a.id = r.agent_id
         where r.team_id = :team_id and a.deleted_at is null and a.revoked_at is null
    )
    select count(*) filter (where presence = 'online') as online_count,
           count(*) filter (where presence = 'online' and held.agent_id is null) as idle_count,
           count(*) filter (where presence in ('offline', 'unknown')) as offline_count,
           count(*) filter (where presence = 'error') as error_count,
           (select coalesce(sum(jobs), 0) from held)::bigint as running_jobs_count,
           now() as at
      from living left join held using (agent_id)
""")  # noqa: S608


@answers(POOL_STATUS)
async def pool_status(work: Work, request: Nothing) -> PoolStatus:
    found = await work.connection.execute(POOL, {"team_id": work.caller.team_id})
    return PoolStatus.model_validate(dict(found.mappings().one()))

"""Agents and the pool, as the database knows them."""

from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Subquery,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    union,
)

from agent_console.database.tables import (
    agent_connectors,
    agent_runtime,
    agents,
    collections,
    jobs,
    sessions,
    users,
)
from agent_console.domain.agents import (
    AGENT_FILTERS,
    HELD_JOBS_CAP,
    OFFLINE_AFTER_SECONDS,
    Agent,
    AgentAsked,
    AgentQuery,
    PoolStatus,
)
from agent_console.domain.ids import AgentId, TeamId, UserId
from agent_console.domain.list_order import ListOrder
from agent_console.domain.records import Nothing, Page
from agent_console.domain.states import JOB_HELD, Lifecycle, Presence, SessionStatus
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST, POOL_STATUS
from agent_console.repository.postgres.filter_terms import either, id_said, ids_of_age, of_age, with_words
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.queue.paused import pause_of
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.walked_pages import last_walked, walked
from agent_console.repository.postgres.work import Work, answers

RUNTIME_SHOWN = ("last_heartbeat_at", "capabilities", "metrics", "lifecycle", "lifecycle_changed_at")

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
OPEN_SESSIONS = (
    select(func.count())
    .select_from(sessions)
    .where(
        sessions.c.team_id == agents.c.team_id,
        sessions.c.agent_id == agents.c.id,
        # Written out, so that the partial index of open sessions is seen to fit.
        text(f"sessions.status = {SessionStatus.ACTIVE:d}"),
    )
    .scalar_subquery()
)
BOUND_COLLECTIONS = (
    select(func.coalesce(func.array_agg(collections.c.id), text("array[]::uuid[]")))
    .where(
        collections.c.team_id == agents.c.team_id,
        collections.c.bound_agent_id == agents.c.id,
        collections.c.deleted_at.is_(None),
    )
    .scalar_subquery()
)
UPTIME = case(
    (
        STATUS.in_((Presence.ONLINE.value, Presence.ERROR.value)),
        cast(func.extract("epoch", func.now() - agent_runtime.c.started_at), Integer),
    )
)


def status_is(status: Presence) -> ColumnElement[bool]:
    """With the presence that it implies, if there is one, which agent_runtime_presence_idx knows."""
    shown = STATUS.in_((status.value,))
    if status in (Presence.OFFLINE, Presence.REVOKED):
        return shown
    return and_(shown, agent_runtime.c.presence == status.value)


def living_agents(team_id: TeamId) -> Select[Any]:
    """Agents with all that is shown of them: a few look-ups by key for each row of a page."""
    in_error = or_(status_is(Presence.ERROR), agent_runtime.c.lifecycle == Lifecycle.ERROR)
    shown = (
        *(agents.c[name] for name in Agent.model_fields if name in agents.c),
        *(agent_runtime.c[name] for name in RUNTIME_SHOWN),
        case((in_error, agent_runtime.c.error_message)).label("error_message"),
        STATUS.label("status"),
        owner.c.full_name.label("owner"),
        creator.c.full_name.label("created_by"),
        HELD_JOBS.label("current_jobs"),
        CONNECTORS.label("connectors"),
        OPEN_SESSIONS.label("open_sessions"),
        BOUND_COLLECTIONS.label("bound_collections"),
        UPTIME.label("uptime_seconds"),
    )
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)
    owned = and_(owner.c.team_id == agents.c.team_id, owner.c.id == agents.c.owner_user_id)
    made = and_(creator.c.team_id == agents.c.team_id, creator.c.id == agents.c.created_by_user_id)
    return (
        select(*shown)
        .select_from(agents.join(agent_runtime, runtime).join(owner, owned).join(creator, made))
        .where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None))
    )


def agents_in_error(team_id: TeamId, at_most: int) -> Select[Any]:
    """Those that say so, and hosted ones that ended in an error: each found by an index of its own."""
    gone_wrong = and_(agent_runtime.c.lifecycle == Lifecycle.ERROR, agents.c.revoked_at.is_(None))
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)

    def newest(way: ColumnElement[bool]) -> Select[Any]:
        found = select(agents.c.id).select_from(agents.join(agent_runtime, runtime))
        living = found.where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None), way)
        return select(living.order_by(agents.c.id.desc()).limit(at_most).subquery().c.id)

    either_way = union(newest(status_is(Presence.ERROR)), newest(gone_wrong))
    return living_agents(team_id).where(agents.c.id.in_(either_way)).order_by(agents.c.id.desc()).limit(at_most)


def has_capability(capabilities: ColumnElement[Any], demand: str) -> ColumnElement[bool]:
    """A tool asked for without a version is also found with one."""
    exact = capabilities.op("?", is_comparison=True)(demand)
    if not demand.startswith("tool:") or demand.count(":") > 1:
        return exact
    item = func.jsonb_array_elements_text(capabilities).column_valued("capability")
    versioned = exists(select(item).where(func.starts_with(item, f"{demand}:")))
    return or_(exact, versioned)


@answers(AGENTS_LIST)
async def list_agents(work: Work, query: AgentQuery) -> Page[Agent]:
    wanted = agents_asked_for(work.caller.team_id, query)
    if query.filter is None:
        rows = (await work.connection.execute(wanted.limit(query.limit + 1))).mappings().all()
        return page_of(Page[Agent], rows, query.limit, AgentId)
    walk = walked_agents(work.caller.team_id, query)
    wanted = wanted.where(agents.c.id.in_(kept_agents(work.caller.team_id, query, walk))).limit(query.limit + 1)
    rows = (await work.connection.execute(wanted)).mappings().all()
    page = page_of(Page[Agent], rows, query.limit, AgentId)
    if page.next is not None:
        return page
    end = await last_walked(work, walk, partial(_order_of, query))
    return page if end is None else page.model_copy(update={"next": str(AgentId.of(end["id"]))})


def _from_either_end(wanted: Select[Any], query: AgentQuery) -> Select[Any]:
    oldest = query.order is ListOrder.OLDEST
    if (after := position(query.after, AgentId)) is not None:
        wanted = wanted.where(agents.c.id > after if oldest else agents.c.id < after)
    return wanted.order_by(agents.c.id if oldest else agents.c.id.desc())


def _order_of(query: AgentQuery, rows: FromClause) -> tuple[ColumnElement[Any], ...]:
    return (rows.c.id if query.order is ListOrder.OLDEST else rows.c.id.desc(),)


def walked_agents(team_id: TeamId, query: AgentQuery) -> Subquery:
    """The agents that one page of a filtered list looks at, along agents_team_idx, and only what it looks at."""
    looked_at = (
        *(agents.c[name] for name in ("id", "name", "hostname", "version", "owner_user_id", "created_at")),
        agent_runtime.c.capabilities,
        STATUS.label("status"),
    )
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)
    wanted = select(*looked_at).select_from(agents.join(agent_runtime, runtime))
    wanted = wanted.where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None))
    age = ids_of_age(AGENT_FILTERS.read(query.filter or ""), agents.c.id)
    return walked(_from_either_end(wanted.where(*age), query))


def kept_agents(team_id: TeamId, query: AgentQuery, walk: Subquery) -> Select[Any]:
    asked, found = AGENT_FILTERS.read(query.filter or ""), walk.c
    able = [has_capability(found.capabilities, demand) for demand in asked.wanted("capability")]
    unable = (~has_capability(found.capabilities, demand) for demand in asked.unwanted("capability"))
    return select(found.id).where(
        either(found.status, asked.wanted("status"), asked.unwanted("status")),
        either(found.hostname, asked.wanted("host"), asked.unwanted("host")),
        either(found.version, asked.wanted("version"), asked.unwanted("version")),
        *([or_(*able)] if able else []),
        *unable,
        *([found.owner_user_id.in_(_called(team_id, asked.wanted("owner")))] if asked.wanted("owner") else []),
        *(
            [found.owner_user_id.not_in(_called(team_id, asked.unwanted("owner")))]
            if asked.unwanted("owner")
            else []
        ),
        of_age(asked, found.created_at),
        with_words(asked, found.name),
    )


def _called(team_id: TeamId, words: tuple[str, ...]) -> Select[Any]:
    """People by e-mail or by id."""
    ids = [user_id for word in words if (user_id := id_said(word, UserId)) is not None]
    named = or_(func.lower(users.c.email).in_([word.lower() for word in words]), users.c.id.in_(ids))
    return select(users.c.id).where(users.c.team_id == team_id, named)


def agents_asked_for(team_id: TeamId, query: AgentQuery) -> Select[Any]:
    wanted = _from_either_end(living_agents(team_id), query)
    if query.status is not None:
        wanted = wanted.where(status_is(query.status))
    if query.owner is not None:
        wanted = wanted.where(agents.c.owner_user_id == query.owner)
    if query.capability is not None:
        wanted = wanted.where(has_capability(agent_runtime.c.capabilities, query.capability.strip()))
    return wanted


@answers(AGENTS_GET)
async def get_agent(work: Work, asked: AgentAsked) -> Agent:
    wanted = living_agents(work.caller.team_id).where(agents.c.id == asked.agent_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise no_agent(asked.agent_id)
    return Agent.model_validate(dict(found))


# A few rows of pool_counts, which triggers keep, and jobs_held_idx up to the cap: neither grows with the fleet.
# Silence counts once the sweep has written it down. An agent that holds a job and is online is not idle.
POOL = text("""
    with pool as (
        select coalesce(sum(online), 0) as online, coalesce(sum(error), 0) as error,
               coalesce(sum(offline + unknown), 0) as offline
          from pool_counts
         where team_id = :team_id
    ), held as (
        select agent_id, count(*) as jobs
          from (select agent_id from jobs
                 where team_id = :team_id and status in ('assigned', 'running')
                 order by agent_id limit :cap + 1) as capped
         group by agent_id
    ), busy as (
        select coalesce(sum(held.jobs), 0) as jobs, count(r.agent_id) as agents
          from held
          left join agent_runtime r
            on r.team_id = :team_id and r.agent_id = held.agent_id and r.presence = 'online'
    )
    select pool.online as online_count,
           greatest(pool.online - busy.agents, 0) as idle_count,
           pool.offline as offline_count,
           pool.error as error_count,
           least(busy.jobs, :cap) as running_jobs_count,
           busy.jobs > :cap as capped,
           now() as at
      from pool, busy
""")


@answers(POOL_STATUS)
async def pool_status(work: Work, request: Nothing) -> PoolStatus:
    found = await work.connection.execute(POOL, {"team_id": work.caller.team_id, "cap": HELD_JOBS_CAP})
    return PoolStatus.model_validate({**found.mappings().one(), "pause": await pause_of(work)})

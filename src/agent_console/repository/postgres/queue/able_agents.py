"""Who could take the jobs of a lane: found by what they can do, told apart by how they stand."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.agents import OFFLINE_AFTER_SECONDS
from agent_console.domain.explaining import AGENTS_COUNTED, AGENTS_NAMED, LIVING, AbleAgent, AgentGroup, Standing
from agent_console.domain.identity import AuthSource, WorkerAuthContext
from agent_console.domain.ids import AgentId, ConnectorId, TeamId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lanes import Lane

# Agents of one presence that are looked at. No index knows what agents can do, so a larger fleet is not walked
# to its end; the answer says so.
LOOKED_AT = 5_000
# Enough to find one who is allowed to, where tokens forbid some of them.
FIRST_LOOK = 20
JOBS_NAMED = 3
ONLINE = ("online",)
ANY_PRESENCE = ("online", "error", "offline", "unknown")

_ABLE = """
    not exists (select from unnest(cast(:demands as jsonpath[])) as d (path)
                 where not jsonb_path_exists(l.capabilities, d.path))
"""

# Only the one it is bound to: what it can do does not matter.
_BOUND = "select cast(:bound_agent_id as uuid) as agent_id"

# Whoever has credentials of its own for the connector, by agent_connectors_connector_idx.
_HOLDERS = f"""
    select l.agent_id
      from (select r.agent_id, r.capabilities
              from (select agent_id from agent_connectors
                     where team_id = :team_id and connector_id = :connector_id
                     order by agent_id limit :looked_at) as k
             cross join lateral (
                   select * from agent_runtime
                    where team_id = :team_id and agent_id = k.agent_id limit 1) as r
             where r.presence = any (:presences)) as l
     where {_ABLE}
     limit :at_most
"""  # noqa: S608

# By agent_runtime_presence_idx, each presence as far as the cap; and by worker_tokens_worker_idx those whose token
# gives them what they need. The limit inside keeps the filter from walking on.
_EVERYBODY = f"""
    select found.agent_id
      from unnest(cast(:presences as text[])) as p (presence)
     cross join lateral (
           select l.agent_id
             from (select agent_id, capabilities from agent_runtime
                    where team_id = :team_id and presence = p.presence
                    order by agent_id limit :looked_at) as l
            where {_ABLE}
            limit :at_most) as found
    union
    select a.id
      from (select worker_id, capabilities, is_active, expires_at from worker_tokens
             where team_id = :team_id
             order by worker_id limit :looked_at) as l
      join agents a on a.team_id = :team_id and a.worker_id = l.worker_id and a.deleted_at is null
      join agent_runtime r on r.team_id = :team_id and r.agent_id = a.id
     where l.capabilities is not null and l.is_active and (l.expires_at is null or l.expires_at > now())
       and r.presence = any (:presences)
       and {_ABLE}
"""  # noqa: S608

# What tells how each of them stands, all by key: the limits keep the planner from reading whole tables instead.
# How much one holds only matters of those who are online.
_STANDING = f"""
    select a.id, a.name, a.worker_id, a.drained_at, a.drain_reason, a.revoked_at, a.max_concurrent_jobs,
           r.presence, r.last_heartbeat_at, r.error_message, r.capabilities,
           coalesce(r.last_heartbeat_at < now() - interval '{OFFLINE_AFTER_SECONDS} seconds', true) as silent,
           tokens.allowed as tokens,
           exists (select from agent_connectors k
                    where k.team_id = :team_id and k.agent_id = a.id and k.connector_id = :connector_id) as opens,
           case when r.presence = 'online' then
               (select count(*) from jobs j
                 where j.team_id = :team_id and j.agent_id = a.id and j.status in ('assigned', 'running'))
           else 0 end as held
      from ({{found}}) as f
     cross join lateral (
           select * from agents where team_id = :team_id and id = f.agent_id and deleted_at is null limit 1) as a
     cross join lateral (
           select * from agent_runtime where team_id = :team_id and agent_id = f.agent_id limit 1) as r
     cross join lateral (
           select jsonb_agg(jsonb_build_object(
                      'types', t.allowed_job_types, 'repositories', t.allowed_repositories,
                      'capabilities', coalesce(t.capabilities, r.capabilities))) as allowed
             from worker_tokens t
            where t.team_id = :team_id and t.worker_id = a.worker_id
              and t.is_active and (t.expires_at is null or t.expires_at > now())) as tokens
     order by a.id
"""  # noqa: S608


def _statement(found: str) -> TextClause:
    return text(_STANDING.replace("{found}", found))


BOUND, HOLDERS, EVERYBODY = _statement(_BOUND), _statement(_HOLDERS), _statement(_EVERYBODY)

# Which demands no living agent meets, among as many as are looked at above.
UNMET = text("""
    with looked as materialized (
        select r.capabilities
          from unnest(cast(:presences as text[])) as p (presence)
         cross join lateral (
               select agent_id, capabilities from agent_runtime
                where team_id = :team_id and presence = p.presence
                order by agent_id limit :looked_at) as r
         cross join lateral (
               select from agents
                where team_id = :team_id and id = r.agent_id and deleted_at is null and revoked_at is null
                limit 1) as a
    )
    select d.place
      from unnest(cast(:demands as jsonpath[])) with ordinality as d (path, place)
     where not exists (select from looked l where jsonb_path_exists(l.capabilities, d.path))
     order by d.place
""")

# A few rows of pool_counts; revoked agents are not in them and seldom are many.
CROWDED = text("""
    select coalesce(greatest(sum(online), sum(error), sum(offline), sum(unknown)) > :looked_at, false)
      from pool_counts
     where team_id = :team_id
""")

HELD = text("""
    select j.agent_id, array_agg(j.type order by j.id) as types
      from unnest(cast(:agent_ids as uuid[])) as named (agent_id)
     cross join lateral (
           select h.agent_id, h.id, h.type from jobs h
            where h.team_id = :team_id and h.agent_id = named.agent_id and h.status in ('assigned', 'running')
            limit :at_most) as j
     group by j.agent_id
""").bindparams(bindparam("agent_ids", type_=ARRAY(UUID)))


@dataclass(frozen=True)
class AbleAgents:
    groups: tuple[AgentGroup, ...]
    capped: bool


def _path(demand: str) -> str:
    """A demand as a jsonpath over a list of capabilities; a tool is also found with a version."""
    exact = f"@ == {json.dumps(demand)}"
    if not demand.startswith("tool:") or demand.count(":") > 1:
        return f"$[*] ? ({exact})"
    return f"$[*] ? ({exact} || @ starts with {json.dumps(demand + ':')})"


def _facts(team_id: TeamId, lane: Lane, presences: Sequence[str], at_most: int) -> dict[str, object]:
    return {
        "team_id": team_id,
        "bound_agent_id": lane.bound_agent_id,
        "connector_id": lane.connector_id,
        "demands": [_path(demand) for demand in lane.required_capabilities],
        "presences": list(presences),
        "looked_at": LOOKED_AT,
        "at_most": at_most,
    }


def _search(lane: Lane) -> TextClause:
    if lane.bound_agent_id is not None:
        return BOUND
    return HOLDERS if lane.credentials is CredentialLocation.AGENT else EVERYBODY


async def somebody_living(connection: AsyncConnection, team_id: TeamId, lane: Lane) -> bool:
    """Whether an agent that is online could take it, now or when it has done what it is at."""
    rows = (await connection.execute(_search(lane), _facts(team_id, lane, ONLINE, FIRST_LOOK))).all()
    return any(_standing(lane, row)[0] in LIVING for row in rows)


async def able_agents(connection: AsyncConnection, team_id: TeamId, lane: Lane) -> AbleAgents:
    facts = _facts(team_id, lane, ANY_PRESENCE, AGENTS_COUNTED + 1)
    rows = (await connection.execute(_search(lane), facts)).all()
    named: dict[Standing, list[AbleAgent]] = {each: [] for each in Standing}
    counts = dict.fromkeys(Standing, 0)
    for row in rows:
        how, note, since = _standing(lane, row)
        if how is None:
            continue
        counts[how] += 1
        if counts[how] <= AGENTS_NAMED:
            named[how].append(AbleAgent(id=AgentId.of(row.id), name=row.name, since=since, note=note))
    named[Standing.BUSY] = await _with_their_jobs(connection, team_id, named[Standing.BUSY])
    groups = tuple(_group(how, counts[how], agents) for how, agents in named.items() if agents)
    return AbleAgents(groups, lane.bound_agent_id is None and await _crowded(connection, team_id))


async def _crowded(connection: AsyncConnection, team_id: TeamId) -> bool:
    asked = {"team_id": team_id, "looked_at": LOOKED_AT}
    return bool((await connection.execute(CROWDED, asked)).scalar_one())


def _group(standing: Standing, count: int, named: Sequence[AbleAgent]) -> AgentGroup:
    capped = count > AGENTS_COUNTED
    return AgentGroup(standing=standing, count=min(count, AGENTS_COUNTED), capped=capped, agents=tuple(named))


async def unmet_by_all(connection: AsyncConnection, team_id: TeamId, lane: Lane) -> tuple[str, ...]:
    """The lane's demands that no agent meets."""
    if not lane.required_capabilities:
        return ()
    rows = await connection.execute(UNMET, _facts(team_id, lane, ANY_PRESENCE, 0))
    return tuple(lane.required_capabilities[row.place - 1] for row in rows)


async def _with_their_jobs(
    connection: AsyncConnection, team_id: TeamId, busy: Sequence[AbleAgent]
) -> list[AbleAgent]:
    if not busy:
        return []
    asked = {"team_id": team_id, "agent_ids": [agent.id for agent in busy], "at_most": JOBS_NAMED}
    held = {row.agent_id.int: row.types for row in await connection.execute(HELD, asked)}

    def told(agent: AbleAgent) -> AbleAgent:
        types = ", ".join(held.get(agent.id.int, ()))
        return agent.model_copy(update={"note": f"{agent.note}: {types}" if types else agent.note})

    return [told(agent) for agent in busy]


def _standing(lane: Lane, row: Row[Any]) -> tuple[Standing | None, str, datetime | None]:
    """How an agent stands, why, and since when; None when it could not take the job at all."""
    refusal = _refusal(lane, row)
    if refusal is not None and not refusal.by_token:
        return None, refusal.why, None
    if row.revoked_at is not None:
        return Standing.REVOKED, "", row.revoked_at
    if refusal is not None:
        return Standing.NOT_ALLOWED, refusal.why, None
    if row.presence not in ("online", "error") or row.silent:
        return Standing.OFFLINE, "drained too" if row.drained_at else "", row.last_heartbeat_at
    if row.drained_at is not None:
        return Standing.DRAINED, row.drain_reason or "", row.drained_at
    if row.presence == "error":
        return Standing.IN_ERROR, row.error_message or "", None
    if row.held >= row.max_concurrent_jobs:
        return Standing.BUSY, f"{row.held} of {row.max_concurrent_jobs}", None
    return Standing.FREE, f"{row.held} of {row.max_concurrent_jobs}" if row.held else "", None


@dataclass(frozen=True)
class _Refusal:
    why: str
    by_token: bool


def _refusal(lane: Lane, row: Row[Any]) -> _Refusal | None:
    """An agent that was given worker tokens is taken to work with one of them, else with its own key."""
    agent_id = AgentId.of(row.id)
    opened = frozenset({lane.connector_id}) if row.opens and lane.connector_id is not None else frozenset()
    connectors: frozenset[ConnectorId] = opened
    own = lane.why_not(_worker(row, {"capabilities": row.capabilities}), agent_id, connectors)
    if not row.tokens:
        return None if own is None else _Refusal(own, by_token=False)
    by_token = [lane.why_not(_worker(row, token), agent_id, connectors) for token in row.tokens]
    if None in by_token:
        return None
    return _Refusal(by_token[0] or "", by_token=own is None)


def _worker(row: Row[Any], allowed: Mapping[str, Any]) -> WorkerAuthContext:
    types, repositories = allowed.get("types"), allowed.get("repositories")
    # Thousands of them are looked at, and all of it comes from columns that are checked.
    return WorkerAuthContext.model_construct(
        worker_id=row.worker_id,
        auth_source=AuthSource.WORKER_TOKEN if "types" in allowed else AuthSource.API_KEY,
        allowed_job_types=None if types is None else frozenset(types),
        allowed_repositories=None if repositories is None else frozenset(repositories),
        capabilities=frozenset(allowed["capabilities"]),
    )

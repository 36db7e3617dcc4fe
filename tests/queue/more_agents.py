"""Agents by the dozen, each with a key of its own."""

import json
from dataclasses import dataclass

import psycopg

from agent_console.domain.ids import AgentId, TeamId, UserId
from agent_console.domain.secrets import Secret
from tests.support.fleet import Fleet

ADD = """
    with given as (
        select * from jsonb_to_recordset(%(agents)s::jsonb)
            as g (id uuid, user_id uuid, name text, key_hash text, capabilities jsonb, room integer)
    ), people as (
        insert into users (team_id, id, kind, full_name)
        select %(team)s, user_id, 'system', 'Agent: ' || name from given
    ), agents as (
        insert into agents (team_id, id, name, worker_id, owner_user_id, system_user_id, created_by_user_id,
                            hostname, api_key_hash, api_key_prefix, max_concurrent_jobs)
        select %(team)s, g.id, g.name, g.name, a.owner_user_id, g.user_id, a.owner_user_id,
               'host', g.key_hash, 'agt_key_' || left(g.key_hash, 8), g.room
          from given g, agents a
         where a.team_id = %(team)s and a.name = 'atlas'
    )
    insert into agent_runtime (team_id, agent_id, presence, last_heartbeat_at, capabilities)
    select %(team)s, id, 'online', '2099-01-01', capabilities from given
"""


@dataclass(frozen=True)
class AddedAgent:
    id: AgentId
    name: str
    secret: Secret
    capabilities: tuple[str, ...]
    room: int


def new_agent(team_id: TeamId, name: str, capabilities: tuple[str, ...] = (), room: int = 1) -> AddedAgent:
    agent_id = AgentId.new()
    return AddedAgent(agent_id, name, Secret.mint(team_id, agent_id), capabilities, room)


def add_agents(fleet: Fleet, agents: list[AddedAgent]) -> None:
    facts = [
        {
            "id": agent.id.hex,
            "user_id": UserId.new().hex,
            "name": agent.name,
            "key_hash": agent.secret.hash,
            "capabilities": agent.capabilities,
            "room": agent.room,
        }
        for agent in agents
    ]
    with psycopg.connect(fleet.administration) as connection:
        connection.execute(ADD, {"team": fleet.team_id(), "agents": json.dumps(facts)})


def crowd(fleet: Fleet, count: int, capabilities: tuple[str, ...] = (), room: int = 1) -> list[AddedAgent]:
    """So many alike."""
    team_id = fleet.team_id()
    agents = [new_agent(team_id, f"crowd-{number}", capabilities, room) for number in range(count)]
    add_agents(fleet, agents)
    return agents

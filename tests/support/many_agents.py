"""A crowd of agents, made by the database at once."""

import json

from tests.support.fleet import Fleet

NTH_ID = "('01990000-0000-7000-{}000-' || lpad(to_hex(n), 12, '0'))::uuid"


def add_agents(fleet: Fleet, count: int, *capabilities: str, presence: str = "online") -> None:
    """Agents n1, n2 and so on, heard of in the fleet's own time; call it once for each fleet."""
    team_id, owner = fleet.team_id(), fleet.user_id("ana@example.com")
    user_id, agent_id = NTH_ID.format("8"), NTH_ID.format("9")
    fleet.execute(
        "insert into users (team_id, id, kind, full_name)"
        f" select %s, {user_id}, 'system', 'Agent: n' || n from generate_series(1, %s) as n",
        *(team_id, count),
    )
    fleet.execute(
        "insert into agents (team_id, id, name, owner_user_id, system_user_id, created_by_user_id, worker_id,"
        " api_key_hash, api_key_prefix)"
        f" select %s, {agent_id}, 'n' || n, %s, {user_id}, %s, 'n' || n,"
        " encode(sha256(('n' || n)::bytea), 'hex'), 'agt_key_n' from generate_series(1, %s) as n",
        *(team_id, owner, owner, count),
    )
    fleet.execute(
        "insert into agent_runtime (team_id, agent_id, presence, last_heartbeat_at, capabilities)"
        f" select %s, {agent_id}, %s, '2099-03-01', %s::jsonb from generate_series(1, %s) as n",
        *(team_id, presence, json.dumps(capabilities), count),
    )

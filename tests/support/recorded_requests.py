"""Requests of one agent to another as the trail keeps them, in the fleet's own time."""

from datetime import timedelta

from psycopg.types.json import Jsonb

from tests.support.fleet import AT, Fleet

MONTH = "create table audit_log_2099_03 partition of audit_log for values from ('2099-03-01') to ('2099-04-01')"
# Whatever is given is hashed, as the program does it.
REQUEST = """
    insert into audit_log (team_id, id, actor_type, actor_label, action, resource_type, resource_id, metadata,
                           event_hash, created_at)
    select team, id, 'system', 'agent-console', action, 'run', 'run_old', facts,
           audit_event_hash(1::smallint, team, id, at, 'system', null, null, 'agent-console', action, 'run',
                            'run_old', null, null, null, null, null, null, facts), at
      from (select %s::uuid as team, new_id() as id, %s as action, %s::jsonb as facts, %s::timestamptz as at)
        as made
"""


def record_requests(fleet: Fleet, of: str, to: str, count: int, *, action: str, rule: str = "route") -> None:
    """The newest two minutes ago, each a minute before the next."""
    if fleet.one("select to_regclass('audit_log_2099_03') is null"):
        fleet.execute("set role agent_console_owner")
        fleet.execute(MONTH)
        fleet.execute("reset role")
    facts = {"rule": rule, "from_agent_id": str(fleet.agent_id(of)), "to_agent_id": str(fleet.agent_id(to))}
    for minute in range(count, 0, -1):
        fleet.execute(REQUEST, fleet.team_id(), action, Jsonb(facts), AT - timedelta(minutes=minute + 1))

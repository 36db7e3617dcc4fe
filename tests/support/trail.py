"""Acts in the trail, sealed or not, for tests of what becomes of it."""

from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from agent_console.domain.audit import Fact
from agent_console.domain.ids import AuditId, RunId, TeamId, ThreadId
from tests.support.fleet import Fleet

ACT = "select append_audit(%s, 'human', %s, null, 'Ana Costa', %s, 'job', %s, %s, %s, %s, %s, %s)"
# Whatever is given is hashed, as the program does it.
OLD_ACT = """
    insert into audit_log (team_id, id, actor_type, actor_label, action, resource_type, resource_id, event_hash,
                           created_at)
    select %s, id, 'system', 'agent-console', 'job.create', 'job', 'job_old',
           audit_event_hash(1::smallint, %s, id, at, 'system', null, null, 'agent-console', 'job.create', 'job',
                            'job_old', null, null, null, null, null, null, '{}'), at
      from (select new_id() as id, %s::timestamptz as at) as made
    returning id
"""


def act(
    fleet: Fleet,
    *,
    team_id: TeamId | None = None,
    action: str = "job.create",
    resource: str = "job_1",
    facts: dict[str, Fact] | None = None,
    thread_id: ThreadId | None = None,
    run_id: RunId | None = None,
    decision: str | None = None,
    reason: str | None = None,
) -> AuditId:
    """One act of Ana's, in a transaction of its own."""
    whose = (team_id or fleet.team_id(), fleet.user_id("ana@example.com"))
    told = (action, resource, Jsonb(facts or {}), thread_id, run_id, decision, reason)
    return _id(fleet.one(ACT, *whose, *told))


def old_act(fleet: Fleet, at: datetime, team_id: TeamId | None = None) -> AuditId:
    """An act of a month that may have to be made first."""
    month = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    name = f"audit_log_{month:%Y_%m}"
    if fleet.one("select to_regclass(%s) is null", name):
        fleet.execute("set role agent_console_owner")
        fleet.execute(f"create table {name} partition of audit_log for values from ('{month}') to ('{following}')")
        fleet.execute("reset role")
    whose = team_id or fleet.team_id()
    return _id(fleet.one(OLD_ACT, whose, whose, at))


def seal(fleet: Fleet, team_id: TeamId | None = None, at_most: int = 10_000) -> int:
    sealed = fleet.one("select seal_audit(%s, %s)", team_id or fleet.team_id(), at_most)
    assert isinstance(sealed, int)
    return sealed


def moved_from_another_cluster(fleet: Fleet, ahead: int = 5_000) -> None:
    """What is not sealed yet was written in a cluster that is so many transactions ahead of this one."""
    unsealed = "where seq > coalesce((select highest_seq from audit_heads), 0)"
    fleet.execute("set session_replication_role = replica")
    fleet.execute(f"update audit_log set xid = (xid::text::bigint + {ahead})::text::xid8 {unsealed}")
    fleet.execute("set session_replication_role = origin")
    fleet.execute(
        f"insert into audit_heads (team_id, position, hash, audit_xid, audit_seq, highest_seq)"
        f" select %s, 0, %s, min(xid), 0, 0 from audit_log {unsealed}"
        " on conflict (team_id) do update set audit_xid = excluded.audit_xid, audit_seq = 0",
        *(fleet.team_id(), bytes(32)),
    )


def _id(made: object) -> AuditId:
    assert isinstance(made, UUID)
    return AuditId.of(made)

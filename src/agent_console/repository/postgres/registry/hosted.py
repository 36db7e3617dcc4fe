"""The lifecycle of hosted agents: moved by people, and by time."""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.agents import Agent
from agent_console.domain.audit import SYSTEM, AuditEvent, Facts
from agent_console.domain.errors import Conflict, Forbidden
from agent_console.domain.hosted import HIBERNATE_AFTER_SECONDS, IDLE_AFTER_SECONDS, LifecycleMove
from agent_console.domain.identity import Caller
from agent_console.domain.ids import AgentId, TeamId
from agent_console.domain.permissions import Role
from agent_console.domain.states import LIFECYCLE_MOVES, Lifecycle, require_move
from agent_console.repository.operations.agents import AGENTS_MOVE, move_action
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.registry.agent_changes import (
    change,
    close,
    locked_agent,
    release,
    shown,
    tell,
)
from agent_console.repository.postgres.work import Work, answers

ENDS_WORK = frozenset({Lifecycle.HIBERNATING, Lifecycle.STOPPING, Lifecycle.STOPPED})

# The text of an error belongs to the state and leaves with it; unless the agent itself says that it has one.
SET_LIFECYCLE = text(f"""
    update agent_runtime
       set lifecycle = :to,
           lifecycle_changed_at = now(),
           error_message = case when :to = {Lifecycle.ERROR:d} then coalesce(:reason, error_message)
                                when presence = 'error' then error_message end
     where team_id = :team_id and agent_id = :agent_id
""")  # noqa: S608


def require_owner_or_admin(caller: Caller, owner_user_id: object) -> None:
    if caller.role is not Role.ADMIN and caller.user_id != owner_user_id:
        raise Forbidden("Only its owner or an administrator can move this agent.", hint="Ask one of them.")


async def set_lifecycle(work: Work, agent_id: AgentId, to: Lifecycle, reason: str | None = None) -> None:
    facts = {"team_id": work.caller.team_id, "agent_id": agent_id, "to": int(to), "reason": reason}
    await work.connection.execute(SET_LIFECYCLE, facts)


@answers(AGENTS_MOVE)
async def move_agent(work: Work, asked: LifecycleMove) -> Agent:
    agent = await locked_agent(work, asked.agent_id)
    if not agent.hosted:
        raise Conflict(
            f"Agent {asked.agent_id} is not hosted, so it has no lifecycle.",
            hint="Stop it where it runs, or drain it: agent-console agents drain",
        )
    require_owner_or_admin(work.caller, agent.owner_user_id)
    now = Lifecycle(agent.lifecycle)
    require_move(LIFECYCLE_MOVES, f"Agent {asked.agent_id}", now, asked.to)
    facts: Facts = {"from": now.name.lower(), "to": asked.to.name.lower()}
    if asked.to in ENDS_WORK:
        why = f"the agent is {asked.to.name.lower()}"
        facts["sessions"] = await close(work, asked.agent_id, why)
        facts["jobs"] = await release(work, asked.agent_id, why)
    await set_lifecycle(work, asked.agent_id, asked.to, asked.reason)
    await change(work, asked.agent_id)
    await tell(work, move_action(asked.to), asked.agent_id, agent.at, facts, asked.reason)
    return await shown(work, asked.agent_id)


# Whose time has come; served by agent_runtime_lifecycle_idx, which holds hosted agents only. Used is an agent that
# is in a session or at work, until the end of either.
SINCE = "greatest(r.last_used_at, r.lifecycle_changed_at)"
RESTING = f"""
    (r.lifecycle = {Lifecycle.RUNNING:d} and {SINCE} <= now() - interval '{IDLE_AFTER_SECONDS} seconds'
     or r.lifecycle = {Lifecycle.IDLE:d} and {SINCE} <= now() - interval '{HIBERNATE_AFTER_SECONDS} seconds')
    and not exists (select from sessions s
                     where s.team_id = r.team_id and s.agent_id = r.agent_id and s.status = 1)
"""
AT_WORK = """
    exists (select from jobs j
             where j.team_id = r.team_id and j.agent_id = r.agent_id and j.status in ('assigned', 'running'))
"""
TEAMS_WITH_RESTING = text(f"""
    select distinct r.team_id from agent_runtime r
     where r.lifecycle in ({Lifecycle.RUNNING:d}, {Lifecycle.IDLE:d}) and {RESTING}
""")  # noqa: S608

# Locked first and looked at again in other statements, which see a session opened in between.
LOCK_RESTING = text(f"""
    select r.agent_id from agent_runtime r
     where r.team_id = :team_id and r.lifecycle in ({Lifecycle.RUNNING:d}, {Lifecycle.IDLE:d}) and {RESTING}
     order by r.agent_id
     limit :batch
       for no key update skip locked
""")  # noqa: S608

# No job writes down here that it ended: of an agent that is due it is looked up, once in the time it may pause.
# jobs_agent_idx knows the newest of its jobs, and so many are enough whatever their order was.
JOBS_LOOKED_AT = 100
USE = text(f"""
    update agent_runtime r
       set last_used_at = work.until
      from (select r.agent_id,
                   case when {AT_WORK} then now()
                        else (select max(newest.finished_at)
                                from (select finished_at from jobs j
                                       where j.team_id = r.team_id and j.agent_id = r.agent_id
                                       order by j.id desc limit {JOBS_LOOKED_AT}) as newest) end as until
              from agent_runtime r
             where r.team_id = :team_id and r.agent_id = any (:agent_ids)) as work
     where r.team_id = :team_id and r.agent_id = work.agent_id and work.until > {SINCE}
""")  # noqa: S608

# An agent counts as idle from the moment it was due, however late anyone looked.
REST = text(f"""
    update agent_runtime r
       set lifecycle = case r.lifecycle when {Lifecycle.RUNNING:d} then {Lifecycle.IDLE:d}
                                        else {Lifecycle.HIBERNATING:d} end,
           lifecycle_changed_at = case r.lifecycle
               when {Lifecycle.RUNNING:d} then {SINCE} + interval '{IDLE_AFTER_SECONDS} seconds'
               else now() end
     where r.team_id = :team_id and r.agent_id = any (:agent_ids) and {RESTING} and not {AT_WORK}
 returning r.agent_id, r.lifecycle, now() as at
""")  # noqa: S608


async def rest_agents(connection: AsyncConnection, team_id: TeamId, batch: int) -> list[AgentId]:
    """Let agents that nobody uses go idle, and idle ones hibernate."""
    candidates = (await connection.execute(LOCK_RESTING, {"team_id": team_id, "batch": batch})).scalars().all()
    if not candidates:
        return []
    due = {"team_id": team_id, "agent_ids": list(candidates)}
    await connection.execute(USE, due)
    rows = (await connection.execute(REST, due)).all()
    for row in rows:
        was = Lifecycle.RUNNING if row.lifecycle == Lifecycle.IDLE else Lifecycle.IDLE
        await audit_move(connection, team_id, AgentId.of(row.agent_id), was, Lifecycle(row.lifecycle), row.at)
    return [AgentId.of(row.agent_id) for row in rows]


async def audit_move(
    connection: AsyncConnection, team_id: TeamId, agent_id: AgentId, was: Lifecycle, now: Lifecycle, at: datetime
) -> None:
    """A move that nobody asked for is the system's own act."""
    facts = {"from": was.name.lower(), "to": now.name.lower()}
    event = AuditEvent(move_action(now), "agent", str(agent_id), metadata=facts)
    await audit.append_for(connection, team_id, SYSTEM, event, at)

"""The duty to notice agents that fell silent and to give their jobs back."""

from sqlalchemy import Integer, bindparam, text

from agent_console.domain.agents import OFFLINE_AFTER_SECONDS
from agent_console.domain.duties import SILENCE as SILENCE_RULE
from agent_console.domain.ids import AgentId, TeamId
from agent_console.domain.states import Lifecycle
from agent_console.repository.port import Topic
from agent_console.repository.postgres.duties.declared import Duty, announce_all, for_each_team, in_turn
from agent_console.repository.postgres.queue.release import release_jobs
from agent_console.repository.postgres.registry.hosted import audit_move
from agent_console.repository.postgres.repository import Backend

BATCH = 200
LOST = f"no heartbeat for {OFFLINE_AFTER_SECONDS} s"

# Served by agent_runtime_heard_idx, oldest first. Who beats as it should has a minute that began less than 90 s
# ago: however many they are, none of them is looked at. A minute begins before the beat in it, so whoever is late
# but not yet silent is told by the beat itself. The bound is a query of its own because the statistics of times
# are always behind them: a planner that compared them with the clock would now and then read the whole table.
BOUND = f"(select now() - interval '{OFFLINE_AFTER_SECONDS} seconds')"
SILENT = f"r.presence in ('online', 'error') and r.heard_minute < {BOUND} and r.last_heartbeat_at < {BOUND}"

# One look into the index for each team.
TEAMS_WITH_SILENT = text(f"""
    select t.id as team_id
      from teams t
     cross join lateral (select from agent_runtime r
                          where r.team_id = t.id and {SILENT}
                          order by r.heard_minute
                          limit 1) as silent
""")  # noqa: S608

# Whoever is being written just now is not silent. The batch is part of the text: a planner that does not know how
# small it is would rather read the whole table.
SILENCE = text(f"""
    with silent as (
        select r.agent_id, r.lifecycle,
               coalesce(r.lifecycle in ({Lifecycle.PROVISIONING:d}, {Lifecycle.RUNNING:d},
                                        {Lifecycle.IDLE:d}, {Lifecycle.STOPPING:d}), false) as lost
          from agent_runtime r
         where r.team_id = :team_id and {SILENT}
         order by r.heard_minute
         limit :batch
           for no key update skip locked
    )
    update agent_runtime r
       set presence = 'offline',
           started_at = null,
           lifecycle = case when s.lost then {Lifecycle.ERROR:d} else r.lifecycle end,
           lifecycle_changed_at = case when s.lost then now() else r.lifecycle_changed_at end,
           error_message = case when s.lost then :lost
                                when r.lifecycle = {Lifecycle.ERROR:d} then r.error_message end
      from silent s
     where r.team_id = :team_id and r.agent_id = s.agent_id
 returning r.agent_id, s.lost, s.lifecycle as was, now() as at
""").bindparams(bindparam("batch", type_=Integer, literal_execute=True))  # noqa: S608


async def notice_silence(backend: Backend) -> int | None:
    return await for_each_team(backend, TEAMS_WITH_SILENT, _silence, BATCH)


async def _silence(backend: Backend, team_id: TeamId) -> int | None:
    """Write down that some agents are silent and give their jobs back, in one transaction."""
    async with in_turn(backend, SILENCE_RULE.name) as connection:
        if connection is None:
            return None
        rows = (await connection.execute(SILENCE, {"team_id": team_id, "batch": BATCH, "lost": LOST})).all()
        lost = [AgentId.of(row.agent_id) for row in rows]
        released = await release_jobs(connection, team_id, lost, LOST, costs_attempt=True) if lost else []
        for row in rows:
            if row.lost:
                was = Lifecycle(row.was)
                await audit_move(connection, team_id, AgentId.of(row.agent_id), was, Lifecycle.ERROR, row.at)
    announce_all(backend, team_id, Topic.AGENTS, lost)
    announce_all(backend, team_id, Topic.JOBS, (job.job_id for job in released))
    return len(lost)


NOTICE_SILENCE = Duty.of(SILENCE_RULE, notice_silence)

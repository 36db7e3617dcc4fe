"""What somebody has to do while time passes: notice agents that fell silent, let unused ones rest.

Every process runs these; an advisory lock lets one at a time through, and each step is safe to repeat, so any
number of servers and consoles do them neither twice nor not at all.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from agent_console.domain.agents import OFFLINE_AFTER_SECONDS
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, Id, TeamId
from agent_console.domain.states import Lifecycle
from agent_console.repository.port import Topic
from agent_console.repository.postgres.hosted import TEAMS_WITH_RESTING, audit_move, rest_agents
from agent_console.repository.postgres.release import release_jobs
from agent_console.repository.postgres.repository import Backend

DUTY_SECONDS = 3.0
BATCH = 200
# A look at all living agents costs more the more there are, so a large fleet is looked at less often: never later
# than somebody can have fallen silent, and over time never more than this, whatever its size.
LOOKED_AT_PER_SECOND = 5_000.0
LOST = f"no heartbeat for {OFFLINE_AFTER_SECONDS} s"

# Gone with the transaction, so that it works behind a pooler too.
DUTY_LOCK = text("select pg_try_advisory_xact_lock(hashtext('agent_console.duties'))")

# One pass over the living. A heartbeat only ever moves forward, so nobody can fall silent before the oldest of
# them is due: until then there is nothing to look for.
LOOK = text(f"""
    select team_id,
           array_agg(agent_id)
               filter (where last_heartbeat_at < now() - interval '{OFFLINE_AFTER_SECONDS} seconds') as silent,
           extract(epoch from min(last_heartbeat_at) - now())::float + {OFFLINE_AFTER_SECONDS} as due_in,
           count(*) as living
      from agent_runtime
     where presence in ('online', 'error') and last_heartbeat_at is not null
     group by team_id
""")  # noqa: S608

# By primary key; what was seen before is asked again, and whoever is being written just now is not silent.
SILENCE = text(f"""
    with silent as (
        select agent_id, lifecycle
          from agent_runtime
         where team_id = :team_id and agent_id = any (:agent_ids) and presence in ('online', 'error')
           and last_heartbeat_at < now() - interval '{OFFLINE_AFTER_SECONDS} seconds'
         order by agent_id
           for no key update skip locked
    )
    update agent_runtime r
       set presence = 'offline',
           started_at = null,
           lifecycle = case when s.lost then {Lifecycle.ERROR:d} else r.lifecycle end,
           lifecycle_changed_at = case when s.lost then now() else r.lifecycle_changed_at end,
           error_message = case when s.lost then :lost
                                when r.lifecycle = {Lifecycle.ERROR:d} then r.error_message end
      from (select *, coalesce(lifecycle in ({Lifecycle.PROVISIONING:d}, {Lifecycle.RUNNING:d},
                                             {Lifecycle.IDLE:d}, {Lifecycle.STOPPING:d}), false) as lost
              from silent) as s
     where r.team_id = :team_id and r.agent_id = s.agent_id
 returning r.agent_id, s.lost, s.lifecycle as was, now() as at
""")  # noqa: S608


@dataclass
class Duties:
    """One process's share. `look_at` is when its next look at the living agents is worth its cost."""

    backend: Backend
    look_at: float = field(default=0.0)

    async def round(self) -> None:
        """Do everything that is due, if nobody else is doing it just now."""
        if monotonic() >= self.look_at:
            for team_id, silent in (await self.look()).items():
                for start in range(0, len(silent), BATCH):
                    await self.backend.database.within_time(self.sweep(team_id, silent[start : start + BATCH]))
        for team_id in await self._teams_with_resting():
            await self.backend.database.within_time(self._rest(team_id))

    async def look(self) -> dict[TeamId, list[UUID]]:
        """The silent agents of each team that has some."""
        rows = await self.backend.database.within_time(self._look())
        due_in = min((row.due_in for row in rows), default=0.0)
        worth_it_in = sum(row.living for row in rows) / LOOKED_AT_PER_SECOND
        self.look_at = monotonic() + max(0.0, min(due_in, worth_it_in))
        return {TeamId.of(row.team_id): row.silent for row in rows if row.silent}

    async def _look(self) -> Sequence[Row[Any]]:
        async with self.backend.database.reading() as connection:
            return (await connection.execute(LOOK)).all()

    async def sweep(self, team_id: TeamId, agent_ids: list[UUID]) -> None:
        """Write down who of these is still silent and give their jobs back, in one transaction."""
        async with self.backend.database.changing() as connection:
            if not (await connection.execute(DUTY_LOCK)).scalar_one():
                return
            facts = {"team_id": team_id, "agent_ids": agent_ids, "lost": LOST}
            rows = (await connection.execute(SILENCE, facts)).all()
            lost = [AgentId.of(row.agent_id) for row in rows]
            released = await release_jobs(connection, team_id, lost, LOST, costs_attempt=True) if lost else []
            for row in rows:
                if row.lost:
                    was = Lifecycle(row.was)
                    await audit_move(connection, team_id, AgentId.of(row.agent_id), was, Lifecycle.ERROR, row.at)
        self._announce(team_id, Topic.AGENTS, lost)
        self._announce(team_id, Topic.JOBS, (job.job_id for job in released))

    async def _teams_with_resting(self) -> list[TeamId]:
        async def teams() -> list[TeamId]:
            async with self.backend.database.reading() as connection:
                return [TeamId.of(row.team_id) for row in await connection.execute(TEAMS_WITH_RESTING)]

        return await self.backend.database.within_time(teams())

    async def _rest(self, team_id: TeamId) -> None:
        async with self.backend.database.changing() as connection:
            if not (await connection.execute(DUTY_LOCK)).scalar_one():
                return
            rested = await rest_agents(connection, team_id, BATCH)
        self._announce(team_id, Topic.AGENTS, rested)

    def _announce(self, team_id: TeamId, topic: Topic, rows: Iterable[Id]) -> None:
        for row in rows:
            self.backend.announcer.announce(team_id, topic, row)


async def run_duties(backend: Backend, stop: asyncio.Event | None = None) -> None:
    """Until stopped. A database that is away is tried again the next time."""
    stop = stop or asyncio.Event()
    duties = Duties(backend)
    while not stop.is_set():
        with suppress(ConsoleError):
            await duties.round()
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), DUTY_SECONDS)


@asynccontextmanager
async def duties_done(backend: Backend) -> AsyncIterator[None]:
    """The duties are done for as long as the block lasts."""
    stop = asyncio.Event()
    doing = asyncio.create_task(run_duties(backend, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait({doing}, timeout=2.0)
        doing.cancel()
        with suppress(asyncio.CancelledError):
            await doing

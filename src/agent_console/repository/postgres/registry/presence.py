"""Heartbeats: many at once in one statement that writes agent_runtime and renews leases, and else only that one
started its agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import Integer, Row, bindparam, text

from agent_console.domain.errors import Forbidden
from agent_console.domain.ids import AgentId, JobId, TeamId
from agent_console.domain.permissions import Permission, require_permission
from agent_console.domain.presence import (
    HEARTBEAT_SECONDS,
    HEARTBEAT_SECONDS_BUSY,
    Command,
    CommandName,
    Heartbeat,
    HeartbeatAnswer,
)
from agent_console.domain.secrets import Secret
from agent_console.domain.states import Lifecycle
from agent_console.repository.operations.agents import AGENT_STARTED
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.port import Topic
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.identify import ByAgentKey, Identify, revoked_agent
from agent_console.repository.postgres.live.changes import Announcer
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.queue.gathering import AT_MOST, Gatherer

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# Everything is found by primary key, the held jobs and open sessions by jobs_held_idx and sessions_open_idx. Of
# what a beat of a living agent moves only heard_minute is in an index, which the table makes from
# last_heartbeat_at: until that minute is over its row stays within its page. A key is proved here too: its hash
# is compared with the agent's own. The row as it was is joined once more to tell whether anything a person can
# see has changed; two beats at once may both have seen it as it was, so that one started its agent is told by the
# row itself. The limit tells the planner how few beats there are: else, in a fleet of some thousands, it would
# rather read the whole table.
BEAT = text(f"""
    with beat as (
        select * from jsonb_to_recordset(cast(:beats as jsonb)) as b (
            agent_id uuid, key_hash text, status text, error_message text,
            capabilities jsonb, metrics jsonb, jobs uuid[])
         order by agent_id
         limit :at_most
    ), written as (
        update agent_runtime r
           set presence = b.status,
               last_heartbeat_at = now(),
               started_at = case when r.presence in ('online', 'error') then r.started_at else now() end,
               capabilities = coalesce(b.capabilities, r.capabilities),
               metrics = coalesce(b.metrics, r.metrics),
               error_message = case when b.status = 'error' then b.error_message
                                    when r.lifecycle = {Lifecycle.ERROR:d} then r.error_message end,
               lifecycle = case r.lifecycle when {Lifecycle.PROVISIONING:d} then {Lifecycle.RUNNING:d}
                                            else r.lifecycle end,
               lifecycle_changed_at = case r.lifecycle when {Lifecycle.PROVISIONING:d} then now()
                                                       else r.lifecycle_changed_at end
          from beat b
          join agents a on a.team_id = :team_id and a.id = b.agent_id
          join agent_runtime old on old.team_id = :team_id and old.agent_id = b.agent_id
         where r.team_id = :team_id
           and r.agent_id = b.agent_id
           and a.deleted_at is null
           and a.revoked_at is null
           and (b.key_hash is null or a.api_key_hash = b.key_hash
                or (a.previous_key_hash = b.key_hash and a.previous_key_ends_at > now()))
        returning r.agent_id, r.lifecycle, b.jobs, a.name, a.drained_at is not null as drained,
                  r.lifecycle = {Lifecycle.RUNNING:d} and r.lifecycle_changed_at = now() as started,
                  (old.presence, old.error_message, old.lifecycle, old.capabilities)
                  is distinct from (r.presence, r.error_message, r.lifecycle, r.capabilities) as changed
    ), renewed as (
        update jobs j
           set lease_expires_at = now() + make_interval(secs => coalesce(j.lease_seconds, 120))
          from written w
         where j.team_id = :team_id
           and j.id = any (w.jobs)
           and j.agent_id = w.agent_id
           and j.status in ('assigned', 'running')
    )
    select w.agent_id, w.lifecycle, w.drained, w.changed, now() as at, held.jobs, held.cancelled,
           case when w.started
                then append_audit(:team_id, 'agent', null, w.agent_id, w.name, '{AGENT_STARTED}', 'agent',
                                  shown_id('agt', w.agent_id),
                                  jsonb_build_object('from', 'provisioning', 'to', 'running')) end as told,
           exists (select from sessions s
                    where s.team_id = :team_id and s.agent_id = w.agent_id and s.status = 1) as in_session
      from written w
      cross join lateral (
           select count(*) as jobs, array_agg(j.id) filter (where j.cancel_requested_at is not null) as cancelled
             from jobs j
            where j.team_id = :team_id and j.agent_id = w.agent_id and j.status in ('assigned', 'running')
           ) as held
""").bindparams(bindparam("at_most", type_=Integer, literal_execute=True))  # noqa: S608

LIMITS = (1, 8, AT_MOST)

ASKED_BY_LIFECYCLE = {
    Lifecycle.HIBERNATING: CommandName.HIBERNATE,
    Lifecycle.STOPPING: CommandName.STOP,
    Lifecycle.STOPPED: CommandName.STOP,
}


@dataclass(frozen=True)
class Beat:
    """One agent's heartbeat. A key that is still to be proved comes with it."""

    agent_id: AgentId
    said: Heartbeat
    key: Secret | None = None

    def row(self) -> dict[str, object]:
        said = self.said
        return {
            "agent_id": UUID(int=self.agent_id.int).hex,
            "key_hash": None if self.key is None else self.key.hash,
            "status": said.status.value,
            "error_message": said.error_message,
            "capabilities": said.capabilities,
            "metrics": said.metrics,
            "jobs": [UUID(int=job.int).hex for job in said.current_jobs],
        }


class Heartbeats:
    """What all agents of one process share: their heartbeats go into the next statement together."""

    def __init__(self, database: Database, announcer: Announcer) -> None:
        self._database = database
        self._announcer = announcer
        self._gatherer = Gatherer[TeamId, Beat, HeartbeatAnswer | None](self._write)

    async def send(self, team_id: TeamId, beat: Beat) -> HeartbeatAnswer | None:
        """None when there is no such agent, or not with this key, or not any more."""
        return await self._gatherer.add(team_id, beat.agent_id, beat)

    async def _write(self, team_id: TeamId, beats: Sequence[Beat]) -> list[HeartbeatAnswer | None]:
        rows = await self._database.within_time(self._execute(team_id, beats))
        for row in rows.values():
            if row.changed:
                self._announcer.announce(team_id, Topic.AGENTS, AgentId.of(row.agent_id))
        found = (rows.get(beat.agent_id.int) for beat in beats)
        return [None if row is None else answer_of(row) for row in found]

    async def _execute(self, team_id: TeamId, beats: Sequence[Beat]) -> dict[int, Row[Any]]:
        said = dumps([beat.row() for beat in beats])
        async with self._database.reading() as connection:
            rows = (await connection.execute(BEAT, beat_facts(team_id, said, len(beats)))).all()
        return {row.agent_id.int: row for row in rows}

    async def close(self) -> None:
        await self._gatherer.close()


def beat_facts(team_id: TeamId, said: str, count: int) -> dict[str, object]:
    """Few different limits, so that there are few different statements to prepare."""
    return {"team_id": team_id, "beats": said, "at_most": next(limit for limit in LIMITS if count <= limit)}


def answer_of(row: Row[Any]) -> HeartbeatAnswer:
    busy = row.jobs > 0 or row.in_session
    names = [ASKED_BY_LIFECYCLE.get(row.lifecycle), CommandName.DRAIN if row.drained else None]
    cancelled = sorted(JobId.of(job) for job in row.cancelled or ())
    return HeartbeatAnswer(
        at=row.at,
        next_in_seconds=HEARTBEAT_SECONDS_BUSY if busy else HEARTBEAT_SECONDS,
        commands=(
            *(Command(name=name) for name in names if name is not None),
            *(Command(name=CommandName.CANCEL, job_id=job) for job in cancelled),
        ),
    )


@answers_at_own_pace(HEARTBEAT_SEND)
async def send_heartbeat(repository: "PostgresRepository", said: Heartbeat) -> HeartbeatAnswer:
    """A shown key is proved by the statement itself. Whoever it does not accept is identified as every other
    caller is, and hears the reason from there."""
    identify, backend = repository.identify, repository.backend
    if isinstance(identify, ByAgentKey) and isinstance(identify.secret.owner, AgentId):
        key = identify.secret
        heard = await backend.heartbeats.send(key.team_id, Beat(identify.secret.owner, said, key))
        if heard is not None:
            return heard
    team_id, agent_id = await backend.database.within_time(_acting(backend.database, identify))
    if (heard := await backend.heartbeats.send(team_id, Beat(agent_id, said))) is None:
        raise revoked_agent()
    return heard


async def _acting(database: Database, identify: Identify) -> tuple[TeamId, AgentId]:
    async with database.reading() as connection:
        caller = await identify(connection)
    require_permission(caller.role, Permission.ACT_AS_AGENT, HEARTBEAT_SEND.name)
    if caller.agent_id is None:
        raise Forbidden("Only an agent has a heartbeat.", hint="Use the agent's own key.")
    return caller.team_id, caller.agent_id

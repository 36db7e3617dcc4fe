"""Give a waiting job to one agent alone, or to any that can do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select, update

from agent_console.database.tables import agents, collections, jobs
from agent_console.domain.audit import Facts
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import AgentId, JobId, TeamId
from agent_console.domain.job_acts import WAITING
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.job_changes import Done, JobRow, Line, Sorted, tell_stories
from agent_console.repository.postgres.queue.lanes import lane_of
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.reprioritising import not_waiting
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.work import Work


async def require_agent(work: Work, agent_id: AgentId) -> None:
    """Alive, and kept so until the transaction ends."""
    wanted = (
        select(agents.c.revoked_at)
        .where(agents.c.team_id == work.caller.team_id, agents.c.id == agent_id, agents.c.deleted_at.is_(None))
        .with_for_update(read=True)
    )
    if (agent := (await work.connection.execute(wanted)).first()) is None:
        raise no_agent(agent_id)
    if agent.revoked_at is not None:
        raise Conflict(f"Agent {agent_id} is revoked and will never take it.", hint="Name another agent.")


async def require_free_collection(work: Work, job_id: JobId) -> None:
    """Refuse when the job's collection decides who works on it. Locked before the job, as everywhere."""
    wanted = (
        select(collections.c.id, collections.c.bound_agent_id)
        .join(jobs, (jobs.c.team_id == collections.c.team_id) & (jobs.c.collection_id == collections.c.id))
        .where(jobs.c.team_id == work.caller.team_id, jobs.c.id == job_id)
        .with_for_update(read=True, of=collections)
    )
    collection = (await work.connection.execute(wanted)).first()
    if collection is not None and collection.bound_agent_id is not None:
        raise Conflict(
            f"Job {job_id} belongs to collection {collection.id}, which is bound to {collection.bound_agent_id}.",
            hint="Bind the collection to another agent instead.",
        )


@dataclass(frozen=True)
class Rebind:
    agent_id: AgentId | None
    reason: str | None = None
    states: frozenset[JobStatus] = WAITING

    def narrowed(self, team_id: TeamId, job_id: ColumnElement[Any]) -> ColumnElement[bool] | None:
        return None

    async def sort(self, work: Work, rows: Sequence[JobRow]) -> Sorted:
        found = Sorted()
        for row in rows:
            if JobStatus(row.status) not in WAITING:
                found.refuse(row, not_waiting(row, "rebound"))
            elif row.bound_agent_id == self.agent_id:
                found.unchanged.append(row)
            elif row.run_id is not None:
                found.refuse(row, _of_a_run(row))
            else:
                found.ready.append(row)
        return found

    async def do(self, work: Work, rows: Sequence[JobRow]) -> list[Done]:
        return [await self._rebind(work, row) for row in rows]

    async def _rebind(self, work: Work, row: JobRow) -> Done:
        lane_id = await lane_of(
            work,
            bound_agent_id=self.agent_id,
            required_capabilities=tuple(row.required_capabilities),
            job_type=row.type,
            repository=row.repository,
            connector_id=row.connector_id,
        )
        await work.connection.execute(
            update(jobs)
            .where(jobs.c.team_id == work.caller.team_id, jobs.c.id == row.id)
            .values(
                bound_agent_id=self.agent_id,
                lane_id=lane_id,
                updated_by_user_id=work.caller.user_id,
                updated_at=func.now(),
            )
        )
        work.announce(Topic.WORK, place_of(lane_id, self.agent_id))
        was = None if row.bound_agent_id is None else str(row.bound_agent_id)
        now = None if self.agent_id is None else str(self.agent_id)
        facts: Facts = {"from_agent_id": was, "to_agent_id": now}
        words = f"bound to {now}" if now else "no longer bound to an agent"
        await tell_stories(work, [Line(row.id, words, facts, row.attempt)])
        return Done(row.id, facts)


def _of_a_run(row: JobRow) -> Conflict:
    return Conflict(
        f"Job {row.id} belongs to a run, which asked one agent and no other.",
        hint="Cancel it, and ask another agent in the thread.",
    )

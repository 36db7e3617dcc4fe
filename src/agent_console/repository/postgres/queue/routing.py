"""Where a job has to go: what it says itself, what its collection is bound to, and the lane of all that."""

from collections.abc import Sequence

from sqlalchemy import select

from agent_console.database.tables import agents, collections, connectors
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.ids import AgentId, ConnectorId
from agent_console.domain.jobs import NewJob
from agent_console.repository.postgres.queue.lanes import lane_of
from agent_console.repository.postgres.queue.putting_in import Route
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.work import Work


async def routes_of(work: Work, jobs: Sequence[NewJob]) -> list[Route]:
    """Most of many jobs go the same few ways: each is looked up once.

    In one order: two who bring the same new lanes would else wait for each other's.
    """
    ways = [_way(job) for job in jobs]
    first = dict(zip(reversed(ways), reversed(jobs), strict=True))
    known = {way: await routed(work, first[way]) for way in sorted(first, key=repr)}
    return [known[way] for way in ways]


def _way(job: NewJob) -> tuple[object, ...]:
    """All that decides where a job goes."""
    return (
        *(job.bound_agent_id, job.collection_id, job.connector_id),
        *(job.required_capabilities, job.type, job.repository),
    )


async def routed(work: Work, new: NewJob) -> Route:
    bound_agent_id, connector_id = await route_of(work, new)
    lane_id = await lane_of(
        work,
        bound_agent_id=bound_agent_id,
        required_capabilities=new.required_capabilities,
        job_type=new.type,
        repository=new.repository,
        connector_id=connector_id,
    )
    return Route(lane_id, bound_agent_id, connector_id)


async def route_of(work: Work, new: NewJob) -> tuple[AgentId | None, ConnectorId | None]:
    """Where the job must go: what it says itself, or what its collection is bound to."""
    team_id = work.caller.team_id
    bound_agent_id, connector_id = new.bound_agent_id, new.connector_id
    if new.collection_id is not None:
        wanted = select(collections.c.bound_agent_id, collections.c.connector_id).where(
            collections.c.team_id == team_id,
            collections.c.id == new.collection_id,
            collections.c.deleted_at.is_(None),
        )
        # Shared, so that nobody deletes it between this look and the job that refers to it.
        wanted = wanted.with_for_update(read=True)
        collection = (await work.connection.execute(wanted)).first()
        if collection is None:
            raise NotFound(
                f"There is no collection {new.collection_id}.", hint="List them: agent-console collections list"
            )
        if collection.bound_agent_id not in (None, bound_agent_id) and bound_agent_id is not None:
            raise Conflict(
                f"Collection {new.collection_id} is bound to {collection.bound_agent_id}.",
                hint="Leave the agent out, or name the bound one.",
            )
        bound_agent_id = collection.bound_agent_id or bound_agent_id
        connector_id = connector_id or collection.connector_id
    if new.connector_id is not None:
        known = (
            select(connectors.c.id)
            .where(
                connectors.c.team_id == team_id,
                connectors.c.id == new.connector_id,
                connectors.c.deleted_at.is_(None),
            )
            .with_for_update(read=True)
        )
        if (await work.connection.execute(known)).first() is None:
            raise NotFound(
                f"There is no connector {new.connector_id}.", hint="List them: agent-console connectors list"
            )
    if bound_agent_id is not None:
        able = select(agents.c.revoked_at).where(
            agents.c.team_id == team_id, agents.c.id == bound_agent_id, agents.c.deleted_at.is_(None)
        )
        # Whoever deletes an agent waits for this, and this for them; nobody else does, and the agent works on.
        able = able.with_for_update(read=True, key_share=True)
        agent = (await work.connection.execute(able)).first()
        if agent is None:
            raise no_agent(bound_agent_id)
        if agent.revoked_at is not None:
            raise Conflict(
                f"Agent {bound_agent_id} is revoked and will never take it.", hint="Choose another agent, or none."
            )
    return bound_agent_id, connector_id

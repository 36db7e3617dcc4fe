"""Find or make the lane of a job when it is enqueued, so that a claim never has to compare sets."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import lanes
from agent_console.domain.ids import AgentId, ConnectorId, LaneId
from agent_console.domain.lanes import lane_key
from agent_console.repository.postgres.work import Work


async def lane_of(
    work: Work,
    *,
    bound_agent_id: AgentId | None,
    required_capabilities: tuple[str, ...],
    job_type: str,
    repository: str | None,
    connector_id: ConnectorId | None,
) -> LaneId:
    team_id = work.caller.team_id
    key = lane_key(bound_agent_id, required_capabilities, job_type, repository, connector_id)
    known = select(lanes.c.id).where(lanes.c.team_id == team_id, lanes.c.key == key)
    if found := (await work.connection.execute(known)).scalar():
        return LaneId.of(found)
    # Two first jobs of one lane may meet here: the loser waits for the winner and then reads its row.
    await work.connection.execute(
        insert(lanes)
        .values(
            team_id=team_id,
            id=LaneId.new(),
            key=key,
            bound_agent_id=bound_agent_id,
            required_capabilities=list(required_capabilities),
            job_type=job_type,
            repository=repository,
            connector_id=connector_id,
        )
        .on_conflict_do_nothing()
    )
    return LaneId.of((await work.connection.execute(known)).scalar_one())

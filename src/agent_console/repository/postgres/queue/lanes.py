"""The lane of a job: found or made when it is enqueued, so that a claim never has to compare sets."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import lanes
from agent_console.domain.ids import AgentId, ConnectorId, LaneId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lanes import Lane, lane_key
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


def lane_from(row: Any) -> Lane:
    """A lane with where the credentials of its connector are kept."""
    return Lane(
        id=LaneId.of(row.lane_id),
        bound_agent_id=None if row.bound_agent_id is None else AgentId.of(row.bound_agent_id),
        required_capabilities=tuple(row.required_capabilities),
        job_type=row.job_type,
        repository=row.repository,
        connector_id=None if row.connector_id is None else ConnectorId.of(row.connector_id),
        credentials=None if row.credential_location is None else CredentialLocation(row.credential_location),
    )

"""The duty to let hosted agents rest that nobody uses."""

from agent_console.domain.ids import TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.duty_declared import Duty, announce_all, in_turn
from agent_console.repository.postgres.hosted import TEAMS_WITH_RESTING, rest_agents
from agent_console.repository.postgres.repository import Backend

NAME = "rest"
BATCH = 200


async def let_rest(backend: Backend) -> int:
    rested = 0
    for team_id in await backend.database.within_time(_teams(backend)):
        rested += await backend.database.within_time(_let_rest(backend, team_id))
    return rested


async def _teams(backend: Backend) -> list[TeamId]:
    async with backend.database.reading() as connection:
        return [TeamId.of(row.team_id) for row in await connection.execute(TEAMS_WITH_RESTING)]


async def _let_rest(backend: Backend, team_id: TeamId) -> int:
    async with in_turn(backend, NAME) as connection:
        rested = [] if connection is None else await rest_agents(connection, team_id, BATCH)
    announce_all(backend, team_id, Topic.AGENTS, rested)
    return len(rested)


LET_REST = Duty(NAME, every_seconds=3.0, round=let_rest)

"""The duty to let hosted agents rest that nobody uses."""

from agent_console.domain.duties import REST
from agent_console.domain.ids import TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.duties.declared import Duty, announce_all, for_each_team, in_turn
from agent_console.repository.postgres.registry.hosted import TEAMS_WITH_RESTING, rest_agents
from agent_console.repository.postgres.repository import Backend

BATCH = 200


async def let_rest(backend: Backend) -> int | None:
    return await for_each_team(backend, TEAMS_WITH_RESTING, _let_rest, BATCH)


async def _let_rest(backend: Backend, team_id: TeamId) -> int | None:
    async with in_turn(backend, REST.name) as connection:
        if connection is None:
            return None
        rested = await rest_agents(connection, team_id, BATCH)
    announce_all(backend, team_id, Topic.AGENTS, rested)
    return len(rested)


LET_REST = Duty.of(REST, let_rest)

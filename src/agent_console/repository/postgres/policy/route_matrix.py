"""The policy as a matrix: a page of agents, and the routes among them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, func, select

from agent_console.database.tables import a2a_routes, agent_runtime, agents
from agent_console.domain.ids import AgentId, TeamId
from agent_console.domain.routes import Matrix, MatrixAgent, MatrixCell, MatrixQuery
from agent_console.repository.operations.routes import ROUTES_MATRIX
from agent_console.repository.postgres.registry.agents import STATUS
from agent_console.repository.postgres.work import Work, answers


@answers(ROUTES_MATRIX)
async def route_matrix(work: Work, query: MatrixQuery) -> Matrix:
    rows = (await work.connection.execute(wanted_agents(work.caller.team_id, query))).all()
    more = not query.agents and len(rows) > query.limit
    shown = rows[: query.limit] if more else rows
    found = await work.connection.execute(wanted_cells(work.caller.team_id, [row.id for row in shown]))
    return Matrix(
        agents=tuple(MatrixAgent(id=row.id, name=row.name, status=row.status) for row in shown),
        cells=tuple(MatrixCell.model_validate(dict(row)) for row in found.mappings()),
        next=shown[-1].place if more else None,
    )


def wanted_agents(team_id: TeamId, query: MatrixQuery) -> Select[Any]:
    """In the order of agents_name_uq, as people look for them; names are unique, so the last is the cursor."""
    place = func.lower(agents.c.name)
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)
    wanted = (
        select(agents.c.id, agents.c.name, STATUS.label("status"), place.label("place"))
        .select_from(agents.join(agent_runtime, runtime))
        .where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None))
        .order_by(place)
    )
    if query.agents:
        return wanted.where(agents.c.id.in_(query.agents))
    if query.after is not None:
        wanted = wanted.where(place > query.after)
    return wanted.limit(query.limit + 1)


def wanted_cells(team_id: TeamId, ids: Sequence[AgentId]) -> Select[Any]:
    """By a2a_routes_pair_uq or a2a_routes_to_idx: no more than the routes of these agents."""
    return select(
        a2a_routes.c.id.label("route_id"),
        *(a2a_routes.c[name] for name in ("from_agent_id", "to_agent_id", "policy", "version")),
    ).where(
        a2a_routes.c.team_id == team_id,
        a2a_routes.c.from_agent_id.in_(ids),
        a2a_routes.c.to_agent_id.in_(ids),
    )

"""Reading routes: one, a page of them, and the history of a pair."""

from typing import Any

from sqlalchemy import Select, and_, select

from agent_console.database.tables import a2a_route_versions, a2a_routes, agents, users
from agent_console.domain.errors import NotFound
from agent_console.domain.ids import AgentId, RouteId, TeamId
from agent_console.domain.records import Page
from agent_console.domain.routes import Route, RouteAsked, RouteHistoryQuery, RouteQuery, RouteVersion
from agent_console.repository.operations.routes import ROUTES_GET, ROUTES_HISTORY, ROUTES_LIST
from agent_console.repository.postgres.pages import no_such_page, page_of, position
from agent_console.repository.postgres.registry.agent_words import agents_called, no_agent, pair_called
from agent_console.repository.postgres.work import Work, answers

asking = agents.alias("asking")
asked_agent = agents.alias("asked")
creator = users.alias("creator")
changer = users.alias("changer")


def shown_routes(team_id: TeamId) -> Select[Any]:
    """Routes with the names of everyone they tell of: a few look-ups by key for each row."""
    names = (
        (asking, a2a_routes.c.from_agent_id),
        (asked_agent, a2a_routes.c.to_agent_id),
    )
    people = ((creator, a2a_routes.c.created_by_user_id), (changer, a2a_routes.c.updated_by_user_id))
    joined: Any = a2a_routes
    for table, key in names:
        joined = joined.join(table, and_(table.c.team_id == a2a_routes.c.team_id, table.c.id == key))
    for table, key in people:
        joined = joined.outerjoin(table, and_(table.c.team_id == a2a_routes.c.team_id, table.c.id == key))
    return (
        select(
            *(a2a_routes.c[name] for name in Route.model_fields if name in a2a_routes.c),
            asking.c.name.label("from_agent"),
            asked_agent.c.name.label("to_agent"),
            creator.c.full_name.label("created_by"),
            changer.c.full_name.label("updated_by"),
        )
        .select_from(joined)
        .where(a2a_routes.c.team_id == team_id)
    )


async def route_of(work: Work, route_id: RouteId) -> Route:
    wanted = shown_routes(work.caller.team_id).where(a2a_routes.c.id == route_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise no_route(route_id)
    return Route.model_validate(dict(found))


def no_route(route_id: RouteId) -> NotFound:
    return NotFound(f"There is no route {route_id}.", hint="List them: agent-console routes list")


@answers(ROUTES_GET)
async def get_route(work: Work, asked: RouteAsked) -> Route:
    return await route_of(work, asked.route_id)


@answers(ROUTES_LIST)
async def list_routes(work: Work, query: RouteQuery) -> Page[Route]:
    words = [word for word in (query.from_agent, query.to_agent) if word is not None]
    found = await agents_called(work, words) if words else {}
    for word in words:
        if word not in found:
            raise no_agent(word)
    of, to = (None if word is None else found[word].id for word in (query.from_agent, query.to_agent))
    rows = (await work.connection.execute(wanted_routes(work.caller.team_id, query, of, to))).mappings().all()
    return page_of(Page[Route], rows, query.limit, RouteId)


def wanted_routes(team_id: TeamId, query: RouteQuery, of: AgentId | None, to: AgentId | None) -> Select[Any]:
    """By key, a2a_routes_from_idx, a2a_routes_to_idx or a2a_routes_policy_idx, each in the order of ids."""
    wanted = shown_routes(team_id).order_by(a2a_routes.c.id).limit(query.limit + 1)
    if (after := position(query.after, RouteId)) is not None:
        wanted = wanted.where(a2a_routes.c.id > after)
    if of is not None:
        wanted = wanted.where(a2a_routes.c.from_agent_id == of)
    if to is not None:
        wanted = wanted.where(a2a_routes.c.to_agent_id == to)
    if query.policy is not None:
        wanted = wanted.where(a2a_routes.c.policy == query.policy.value)
    return wanted


def versions(team_id: TeamId, of: AgentId, to: AgentId) -> Select[Any]:
    """Newest first, by a2a_route_versions_pair_uq, read backwards."""
    changed = and_(
        changer.c.team_id == a2a_route_versions.c.team_id, changer.c.id == a2a_route_versions.c.changed_by_user_id
    )
    return (
        select(
            *(a2a_route_versions.c[name] for name in RouteVersion.model_fields if name in a2a_route_versions.c),
            changer.c.full_name.label("changed_by"),
        )
        .select_from(a2a_route_versions.outerjoin(changer, changed))
        .where(
            a2a_route_versions.c.team_id == team_id,
            a2a_route_versions.c.from_agent_id == of,
            a2a_route_versions.c.to_agent_id == to,
        )
        .order_by(a2a_route_versions.c.version.desc())
    )


@answers(ROUTES_HISTORY)
async def route_history(work: Work, query: RouteHistoryQuery) -> Page[RouteVersion]:
    of, to = await pair_called(work, query.from_agent, query.to_agent, deleted_too=True)
    wanted = versions(work.caller.team_id, of.id, to.id).limit(query.limit + 1)
    if query.after is not None:
        wanted = wanted.where(a2a_route_versions.c.version < _version(query.after))
    rows = (await work.connection.execute(wanted)).mappings().all()
    shown = rows[: query.limit]
    following = str(shown[-1]["version"]) if len(rows) > query.limit else None
    return Page[RouteVersion].model_validate({"items": [dict(row) for row in shown], "next": following})


def _version(after: str) -> int:
    if not after.isascii() or not after.isdecimal() or len(after) > 9:
        raise no_such_page()
    return int(after)

"""Which agent may ask which: the list of routes, and one of them."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.ids import RouteId
from agent_console.domain.routes import Route, RouteAsked, RouteQuery
from agent_console.domain.spans import ago
from agent_console.repository.operations.routes import ROUTES_GET, ROUTES_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading
from agent_console.tui.panes.audit.trails import trail_of
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.panes.routes.axes import POLICIES
from agent_console.tui.panes.routes.looks import notes_text, pair_text, policy_text
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("policy", "Policy", 15),
    Column("from", "From", 18, min_width=8),
    Column("to", "To", 18, min_width=8),
    Column("version", "Ver", 4, align="right"),
    Column("changed", "Changed", 8, align="right"),
    Column("by", "By", 14, drop=2),
    Column("notes", "Notes", None, min_width=8, drop=1),
)


def route_cells(route: Route, now: datetime) -> tuple[Content, ...]:
    return (
        policy_text(route.policy),
        agent_text(route.from_agent, limit=100),
        agent_text(route.to_agent, limit=100),
        system_text(str(route.version), "$foreground-muted"),
        system_text(ago(route.updated_at, now), "$foreground-muted"),
        agent_text(route.updated_by or "-", "$foreground-muted", limit=60),
        agent_text(route.notes or "", "$foreground-muted", limit=200),
    )


def who_and_when(who: str | None, when: datetime, now: datetime) -> Content:
    return agent_text(f"{ago(when, now)} ago by {who or 'nobody who is still known'}", limit=200)


def route_facts(route: Route, now: datetime) -> FactSheet:
    return FactSheet(
        (
            Heading(pair_text(route.from_agent, route.to_agent)),
            Fact("policy", policy_text(route.policy)),
            Fact("version", system_text(str(route.version))),
            Fact("notes", notes_text(route.notes)),
            Fact("changed", who_and_when(route.updated_by, route.updated_at, now)),
            Fact("made", who_and_when(route.created_by, route.created_at, now)),
            Fact("id", system_text(str(route.id))),
            Fact("from", system_text(str(route.from_agent_id))),
            Fact("to", system_text(str(route.to_agent_id))),
        )
    )


def trail_of_route(route_id: str, pair: str) -> ListKind:
    return trail_of("route", route_id, pair, above="routes")


ROUTES = ListKind(
    name="routes",
    title="Routes",
    topics=frozenset({Topic.ROUTES, Topic.AGENTS}),
    columns=COLUMNS,
    newest_first=False,
    list_operation=ROUTES_LIST,
    query=lambda group, limit, after: RouteQuery(limit=limit, after=after, policy=POLICIES.get(group)),
    get_operation=ROUTES_GET,
    asked=lambda row_id: RouteAsked(route_id=RouteId.parse(row_id)),
    cells=route_cells,
    facts=route_facts,
    empty="No routes: no agent may ask another.\nm shows the matrix; e on a pair makes a route.",
    groups=(
        ListGroup("all", "all routes"),
        ListGroup("allowed", "allowed"),
        ListGroup("blocked", "blocked"),
        ListGroup("asks", "that ask a person"),
    ),
    below={"trail": lambda route: trail_of_route(str(route.id), f"{route.from_agent} → {route.to_agent}")},
    jumps={"agents": lambda route: route.from_agent_id},
)

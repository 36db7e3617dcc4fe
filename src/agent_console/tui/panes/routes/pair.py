"""Two agents, one of which may or may not ask the other: what is known of them on one line and on a sheet."""

from dataclasses import dataclass
from datetime import datetime

from textual.content import Content

from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import Route
from agent_console.domain.spans import ago
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Remark
from agent_console.tui.panes.routes.lists import route_facts
from agent_console.tui.panes.routes.looks import blank, pair_text, policy_text

NEVER_ITSELF = "An agent needs no route to itself."
BY_DEFAULT = "No route leads from the first to the second, so it is blocked. e makes one."


@dataclass(frozen=True)
class RoutePair:
    """Known by their ids; the names are what they were called when the key was pressed."""

    of: AgentId
    of_name: str
    to: AgentId
    to_name: str

    @property
    def is_itself(self) -> bool:
        return self.of == self.to

    @classmethod
    def of_route(cls, route: Route) -> "RoutePair":
        return cls(route.from_agent_id, route.from_agent, route.to_agent_id, route.to_agent)


def pair_line(pair: RoutePair, policy: RoutePolicy | None, route: Route | None, now: datetime) -> Content:
    named = pair_text(pair.of_name, pair.to_name)
    if pair.is_itself:
        return named + system_text(f"   {NEVER_ITSELF}", "$foreground-muted")
    shown = named + blank(3) + policy_text(policy)
    if route is None:
        return shown
    changed = f"   version {route.version}, {ago(route.updated_at, now)} ago by {route.updated_by or '-'}"
    shown += agent_text(changed, "$foreground-muted", limit=120)
    return shown + system_text("\n") + agent_text(route.notes or "", "$foreground-muted", limit=300)


def pair_facts(pair: RoutePair, policy: RoutePolicy | None, route: Route | None, now: datetime) -> FactSheet:
    if route is not None:
        return route_facts(route, now)
    heading = Heading(pair_text(pair.of_name, pair.to_name))
    if pair.is_itself:
        return FactSheet((heading, Remark(system_text(NEVER_ITSELF, "$foreground-muted"))))
    ids = (Fact("from", system_text(str(pair.of))), Fact("to", system_text(str(pair.to))))
    if policy is not None:
        return FactSheet((heading, Fact("policy", policy_text(policy)), *ids))
    return FactSheet((heading, Fact("policy", policy_text(None)), *ids, Remark(system_text(BY_DEFAULT))))

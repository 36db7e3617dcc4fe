"""Which agents stand along the sides of the matrix, and in which order."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agent_console.domain.filters import Filterable, FilterMistake, Qualifier
from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import MatrixAgent, Route

FAMILY = re.compile(r"[^\W\d_]+")
POLICIES = {
    "allowed": RoutePolicy.ALLOWED,
    "blocked": RoutePolicy.BLOCKED,
    "asks": RoutePolicy.REQUIRES_HUMAN_APPROVAL,
    "requires_human_approval": RoutePolicy.REQUIRES_HUMAN_APPROVAL,
}


class Order(StrEnum):
    NAME = "by name"
    ROUTES = "with routes first"
    FAMILY = "largest families of names first"

    @property
    def following(self) -> "Order":
        orders = list(Order)
        return orders[(orders.index(self) + 1) % len(orders)]


FILTERS = Filterable(
    (
        Qualifier("from", "part of the name of the agent that asks"),
        Qualifier("to", "part of the name of the agent that is asked"),
        Qualifier("policy", "what the route says"),
    ),
    words="both names",
)


@dataclass(frozen=True)
class MatrixFilter:
    """Words that both names of a pair may hold, words for one side only, and the policy of their route."""

    words: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    policy: RoutePolicy | None = None

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.of or self.to or self.policy)


def read_filter(text: str) -> MatrixFilter:
    """What can't be read raises FilterMistake."""
    read = FILTERS.read(text.casefold())
    if any(term.negated for term in read.terms):
        raise FilterMistake("nothing is left out here with !", text.find("!"))
    wanted = {POLICIES.get(word) for word in read.wanted("policy")}
    if None in wanted or len(wanted) > 1:
        raise FilterMistake("policy is one of: allowed, blocked, asks", text.casefold().find("policy:"))
    return MatrixFilter(read.words, read.wanted("from"), read.wanted("to"), next(iter(wanted), None))


@dataclass(frozen=True)
class Axes:
    rows: tuple[MatrixAgent, ...] = ()
    columns: tuple[MatrixAgent, ...] = ()


def axes_of(agents: tuple[MatrixAgent, ...], routes: Iterable[Route], wanted: MatrixFilter, order: Order) -> Axes:
    """`routes` are those with the wanted policy, or all of them."""
    asking = Counter[AgentId]()
    asked = Counter[AgentId]()
    for route in routes:
        asking[route.from_agent_id] += 1
        asked[route.to_agent_id] += 1
    ordered = _ordered(agents, asking + asked, order)
    return Axes(
        tuple(agent for agent in ordered if _is_wanted(agent, wanted.of, wanted, asking)),
        tuple(agent for agent in ordered if _is_wanted(agent, wanted.to, wanted, asked)),
    )


def _is_wanted(agent: MatrixAgent, side: tuple[str, ...], wanted: MatrixFilter, having: Counter[AgentId]) -> bool:
    name = agent.name.casefold()
    any_word = not wanted.words or any(word in name for word in wanted.words)
    return any_word and all(word in name for word in side) and (wanted.policy is None or having[agent.id] > 0)


def _ordered(agents: tuple[MatrixAgent, ...], having: Counter[AgentId], order: Order) -> tuple[MatrixAgent, ...]:
    """The order of names stays what it is among those that are equal otherwise."""
    match order:
        case Order.NAME:
            return agents
        case Order.ROUTES:
            return tuple(sorted(agents, key=lambda agent: not having[agent.id]))
        case Order.FAMILY:
            sizes = Counter(family_of(agent.name) for agent in agents)
            return tuple(sorted(agents, key=lambda agent: (-sizes[family_of(agent.name)], family_of(agent.name))))


def family_of(name: str) -> str:
    """What a name begins with, up to its first number or sign: build-07 belongs to build."""
    found = FAMILY.match(name)
    return (found[0] if found else name[:1]).casefold()

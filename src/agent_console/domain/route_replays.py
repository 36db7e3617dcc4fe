"""What the policy would do: to a request that somebody imagines, and, by a draft, to those that were recorded."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from agent_console.domain.delegation import DelegationFacts, Outcome, RouteFacts, Rule, decide
from agent_console.domain.ids import AgentId, AuditId, RunId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.records import Instant, Record, Request
from agent_console.domain.routes import AgentWord

DRAFT_MOST = 1_000
REPLAYED_MOST = 1_000
REPLAYED_DAYS = 90
EXAMPLES_MOST = 20

Pair = tuple[AgentId, AgentId]


class RouteQuestion(Request):
    from_agent: AgentWord = Field(description="The agent that would ask, by name or id.")
    to_agent: AgentWord = Field(description="The agent that would be asked, by name or id.")
    thread_id: ThreadId | None = Field(None, description="In this thread; without it, its rules are left out.")
    parent_run_id: RunId | None = Field(None, description="While it works on this run.")


class RouteExplanation(Record):
    """What would happen if it asked now, and which rule says so."""

    outcome: Outcome
    rule: Rule = Field(description="What decides; the first refusal wins.")
    why: str
    from_agent_id: AgentId
    from_agent: str
    to_agent_id: AgentId
    to_agent: str
    policy: RoutePolicy | None = Field(description="Of the route between the two; null when there is none.")
    version: int | None = Field(description="Of that route.")
    path: tuple[AgentId, ...] = Field(description="Who passed the request on so far; the asking agent is last.")
    not_asked: tuple[Rule, ...] = Field((), description="Rules that depend on what was left out of the question.")


class DraftRoute(Request):
    from_agent: AgentWord = Field(description="The agent that asks, by name or id.")
    to_agent: AgentWord = Field(description="The agent that is asked, by name or id.")
    policy: RoutePolicy | None = Field(description="Null: no route.")


class RouteReplay(Request):
    routes: tuple[DraftRoute, ...] = Field(
        min_length=1, max_length=DRAFT_MOST, description="The draft: a list of from_agent, to_agent, policy."
    )


class ReplayedKind(Record):
    before: Outcome
    after: Outcome
    count: int


class ReplayedRequest(Record):
    audit_id: AuditId = Field(description="The row that recorded it.")
    at: Instant
    from_agent_id: AgentId
    from_agent: str
    to_agent_id: AgentId
    to_agent: str
    before: Outcome
    after: Outcome


class Replay(Record):
    """What a draft would have done to the requests that were recorded."""

    requests: int = Field(description="How many were looked at, the newest first.")
    since: Instant | None = Field(description="When the oldest of them was made.")
    capped: bool = Field(description="True when there are older ones within the time that is looked at.")
    concerned: int = Field(description="How many of them are between agents that the draft names.")
    stopped_before: int = Field(description="How many of those another rule stops with the draft as well.")
    changed: int = Field(description="How many come out otherwise than they did.")
    kinds: tuple[ReplayedKind, ...]
    examples: tuple[ReplayedRequest, ...] = Field(description="Some of the changed ones, the newest first.")


@dataclass(frozen=True)
class Recorded:
    """A request as the audit trail keeps it: who asked whom, what came of it, and what decided."""

    audit_id: AuditId
    at: datetime
    pair: Pair
    outcome: Outcome
    rule: str


@dataclass(frozen=True)
class Replayed:
    concerned: int
    stopped_before: int
    kinds: Counter[tuple[Outcome, Outcome]]
    changed: tuple[tuple[Recorded, Outcome], ...]


def replayed(recorded: Iterable[Recorded], draft: Mapping[Pair, RoutePolicy | None]) -> Replayed:
    """The route is asked last: what another rule stopped comes out as it did, unless the route made it ask."""
    concerned = [request for request in recorded if request.pair in draft]
    reached = [request for request in concerned if _reached(request, draft[request.pair])]
    outcomes = [(request, outcome_of(request.pair, draft[request.pair])) for request in reached]
    changed = tuple((request, after) for request, after in outcomes if after is not request.outcome)
    kinds = Counter((request.outcome, after) for request, after in changed)
    return Replayed(len(concerned), len(concerned) - len(reached), kinds, changed)


def _reached(request: Recorded, policy: RoutePolicy | None) -> bool:
    """How many wait for a person is only asked where the route asks for one."""
    if request.rule == Rule.WAITING_PER_AGENT:
        return policy is not RoutePolicy.REQUIRES_HUMAN_APPROVAL
    return request.rule in (Rule.ROUTE, Rule.NO_ROUTE)


def outcome_of(pair: Pair, policy: RoutePolicy | None) -> Outcome:
    """What the route alone decides."""
    of, to = pair
    route = None if policy is None else RouteFacts(policy, version=1)
    return decide(DelegationFacts(to, (of,), route, max_hops=1, runs_per_thread=1)).outcome

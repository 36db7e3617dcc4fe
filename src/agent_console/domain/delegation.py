"""May one agent ask another to act: every check as data, in the order in which the first refusal wins.

The decision is pure. Whoever needs it gathers the facts: a request that is made, a question what would happen, a
draft of the policy that is tried on old requests.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field, JsonValue

from agent_console.domain.approvals import ApprovalBrief
from agent_console.domain.ids import AgentId, ApprovalId, RunId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.messages import Content
from agent_console.domain.records import Record, Request
from agent_console.domain.runs import IdempotencyKey, Run
from agent_console.domain.states import ApprovalState

WAIT_SECONDS = 30.0


class Rule(StrEnum):
    """What decided. The order of CHECKS is the order in which they are asked."""

    ACCESS = "access"
    TARGET = "target"
    PARENT = "parent"
    PATH = "path"
    HOPS = "hops"
    DUPLICATE = "duplicate"
    RUNS_PER_THREAD = "runs_per_thread"
    WAITING_PER_AGENT = "waiting_per_agent"
    ROUTE = "route"
    NO_ROUTE = "no_route"
    ERROR = "error"


class Outcome(StrEnum):
    ALLOWED = "allowed"
    WAITING = "waiting"
    BLOCKED = "blocked"
    RATE_LIMITED = "rate_limited"
    REPEATED = "repeated"


@dataclass(frozen=True)
class RouteFacts:
    policy: RoutePolicy
    version: int


@dataclass(frozen=True)
class DelegationFacts:
    """What is known of a request when it is decided. `path` ends with the agent that asks."""

    to_agent_id: AgentId
    path: tuple[AgentId, ...]
    route: RouteFacts | None
    max_hops: int
    runs_per_thread: int
    open_runs: int = 0
    waiting: int = 0
    waiting_per_agent: int = 1
    may_write: bool = True
    target_able: bool = True
    parent_fits: bool = True
    repeats: bool = False


@dataclass(frozen=True)
class Verdict:
    """What happens, which rule says so, and in which version of the route, if it came to that."""

    outcome: Outcome
    rule: Rule
    policy_version: int | None
    sentence: str


def decide(facts: DelegationFacts) -> Verdict:
    """The first refusal wins. Never raises: a question that can't be answered is a refusal."""
    try:
        return next(verdict for check in CHECKS if (verdict := check(facts)) is not None)
    except Exception:
        return UNDECIDED


UNDECIDED = Verdict(Outcome.BLOCKED, Rule.ERROR, None, "It could not be decided, so it is blocked.")


def _blocked(rule: Rule, sentence: str) -> Verdict:
    return Verdict(Outcome.BLOCKED, rule, None, sentence)


def _access(facts: DelegationFacts) -> Verdict | None:
    return None if facts.may_write else _blocked(Rule.ACCESS, "The asking agent may not write to this thread.")


def _target(facts: DelegationFacts) -> Verdict | None:
    return None if facts.target_able else _blocked(Rule.TARGET, "There is no such agent that could be asked.")


def _parent(facts: DelegationFacts) -> Verdict | None:
    if facts.parent_fits:
        return None
    return _blocked(Rule.PARENT, "The parent has to be an unfinished run of the asking agent itself.")


def _path(facts: DelegationFacts) -> Verdict | None:
    if facts.to_agent_id not in facts.path:
        return None
    return _blocked(Rule.PATH, "This agent is on the path of the request already; nobody is asked twice.")


def _hops(facts: DelegationFacts) -> Verdict | None:
    if len(facts.path) <= facts.max_hops:
        return None
    times = "once" if facts.max_hops == 1 else f"{facts.max_hops} times"
    return _blocked(Rule.HOPS, f"A request may be passed on {times} at most.")


def _duplicate(facts: DelegationFacts) -> Verdict | None:
    if not facts.repeats:
        return None
    sentence = "The same was asked a moment ago; the first answer stands."
    return Verdict(Outcome.REPEATED, Rule.DUPLICATE, None, sentence)


def _runs_per_thread(facts: DelegationFacts) -> Verdict | None:
    if facts.open_runs < facts.runs_per_thread:
        return None
    return Verdict(
        Outcome.RATE_LIMITED, Rule.RUNS_PER_THREAD, None, too_many_runs(facts.open_runs, facts.runs_per_thread)
    )


def _waiting_per_agent(facts: DelegationFacts) -> Verdict | None:
    """People who are asked too much stop reading what they approve."""
    asks_a_person = facts.route is not None and facts.route.policy is RoutePolicy.REQUIRES_HUMAN_APPROVAL
    if not asks_a_person or facts.waiting < facts.waiting_per_agent:
        return None
    sentence = f"{facts.waiting} requests of this agent wait for a person, and {facts.waiting_per_agent} may."
    return Verdict(Outcome.RATE_LIMITED, Rule.WAITING_PER_AGENT, None, sentence)


def _route(facts: DelegationFacts) -> Verdict:
    if facts.route is None:
        return _blocked(Rule.NO_ROUTE, "No route leads from the asking agent to this one, so it is blocked.")
    outcome, sentence = BY_POLICY[facts.route.policy]
    return Verdict(outcome, Rule.ROUTE, facts.route.version, sentence)


BY_POLICY: dict[RoutePolicy, tuple[Outcome, str]] = {
    RoutePolicy.BLOCKED: (Outcome.BLOCKED, "The route between the two agents is blocked."),
    RoutePolicy.REQUIRES_HUMAN_APPROVAL: (Outcome.WAITING, "The route asks for a person's approval."),
    RoutePolicy.ALLOWED: (Outcome.ALLOWED, "The route between the two agents is open."),
}

CHECKS: tuple[Callable[[DelegationFacts], Verdict | None], ...] = (
    _access,
    _target,
    _parent,
    _path,
    _hops,
    _duplicate,
    _runs_per_thread,
    _waiting_per_agent,
    _route,
)


def too_many_runs(open_runs: int, most: int) -> str:
    return f"{open_runs} runs are open in this thread, and {most} may be open at once."


def canonical(value: JsonValue) -> bytes:
    """JSON in the one form that a digest is taken of."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def digest_of(value: JsonValue) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def request_digest(from_agent_id: AgentId, to_agent_id: AgentId, thread_id: ThreadId, words: str) -> str:
    """Equal for what counts as the same request: the same two agents, the same thread, the same words."""
    return digest_of([str(from_agent_id), str(to_agent_id), str(thread_id), words])


class NewDelegation(Request):
    """One agent asks another. What the request is part of is known to the server, whatever is said here."""

    to: AgentId = Field(description="The agent that is asked.")
    thread_id: ThreadId = Field(description="The thread it belongs to; you must be able to write there.")
    input: Content = Field(description="What is asked; it becomes your message in the thread.")
    idempotency_key: IdempotencyKey | None = Field(
        None, description="The same key again gives the first answer again."
    )
    parent_run_id: RunId | None = Field(
        None, description="Which of your runs it is asked for; without it, the one you work on."
    )


class DelegationState(StrEnum):
    """How the question stands: whether the other agent may be asked."""

    ALLOWED = "allowed"
    WAITING = "waiting"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


STATE_OF: dict[ApprovalState, DelegationState] = {
    ApprovalState.PENDING: DelegationState.WAITING,
    ApprovalState.APPROVED: DelegationState.ALLOWED,
    ApprovalState.REJECTED: DelegationState.REJECTED,
    ApprovalState.EXPIRED: DelegationState.EXPIRED,
    ApprovalState.WITHDRAWN: DelegationState.WITHDRAWN,
    ApprovalState.SUPERSEDED: DelegationState.SUPERSEDED,
}


class Delegation(Record):
    """What became of a request: a run, or an approval that a person still has to give."""

    state: DelegationState
    run: Run | None = Field(None, description="What the other agent does; null until it is allowed.")
    approval: ApprovalBrief | None = Field(None, description="Null when no person was asked.")
    mark: str = Field(description="Send it as `seen` to wait until something has changed.")
    repeated: bool = Field(False, description="True when this is the answer to an earlier, equal request.")

    @classmethod
    def of(cls, run: Run | None, approval: ApprovalBrief | None, *, repeated: bool = False) -> "Delegation":
        state = DelegationState.ALLOWED if approval is None else STATE_OF[approval.state]
        mark = state.value if run is None else f"{state.value}:{run.shown_status}"
        return cls(state=state, run=run, approval=approval, mark=mark, repeated=repeated)


class DelegationAsked(Request):
    """One of the two ids that the answer to a delegation gave. Only the agent that asked is told."""

    run_id: RunId | None = Field(None, description="The run that was made.")
    approval_id: ApprovalId | None = Field(None, description="The approval that was waited for.")
    seen: str | None = Field(None, max_length=100, description="The `mark` you saw last; without it, no waiting.")
    wait_seconds: float = Field(
        0.0, ge=0.0, le=WAIT_SECONDS, description="Wait this long for a change of what you saw."
    )

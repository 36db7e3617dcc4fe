"""May one agent ask another: every check, and which comes first."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent_console.domain.approvals import ApprovalBrief
from agent_console.domain.delegation import (
    STATE_OF,
    UNDECIDED,
    Delegation,
    DelegationFacts,
    DelegationState,
    Outcome,
    RouteFacts,
    Rule,
    canonical,
    decide,
    digest_of,
    request_digest,
)
from agent_console.domain.ids import AgentId, ApprovalId, RunId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.runs import TraceKind, TraceRow, in_tree_order
from agent_console.domain.states import ApprovalState

Wrong = Callable[[DelegationFacts], DelegationFacts]

A, B, C, D = (AgentId.new() for _ in range(4))
OPEN = RouteFacts(RoutePolicy.ALLOWED, 7)
ASKS = RouteFacts(RoutePolicy.REQUIRES_HUMAN_APPROVAL, 7)
FINE = DelegationFacts(to_agent_id=B, path=(A,), route=OPEN, max_hops=2, runs_per_thread=3)

# In the order of the design: the first of these that is not as it should be decides.
IN_ORDER: tuple[tuple[Wrong, Rule, Outcome], ...] = (
    (lambda facts: replace(facts, may_write=False), Rule.ACCESS, Outcome.BLOCKED),
    (lambda facts: replace(facts, target_able=False), Rule.TARGET, Outcome.BLOCKED),
    (lambda facts: replace(facts, parent_fits=False), Rule.PARENT, Outcome.BLOCKED),
    (lambda facts: replace(facts, path=(B, *facts.path)), Rule.PATH, Outcome.BLOCKED),
    (lambda facts: replace(facts, path=(C, D, *facts.path)), Rule.HOPS, Outcome.BLOCKED),
    (lambda facts: replace(facts, repeats=True), Rule.DUPLICATE, Outcome.REPEATED),
    (lambda facts: replace(facts, open_runs=3), Rule.RUNS_PER_THREAD, Outcome.RATE_LIMITED),
    (lambda facts: replace(facts, route=None), Rule.NO_ROUTE, Outcome.BLOCKED),
)


@pytest.mark.rule("U002-11", "U002-12", "U002-13", "U002-14", "R002-74")
@pytest.mark.parametrize(("wrong", "rule", "outcome"), IN_ORDER, ids=[rule for _, rule, _ in IN_ORDER])
def test_each_check_refuses_by_itself(wrong: Wrong, rule: Rule, outcome: Outcome) -> None:
    verdict = decide(wrong(FINE))

    assert (verdict.rule, verdict.outcome, verdict.policy_version) == (rule, outcome, None)
    assert verdict.sentence.endswith(".")


@pytest.mark.parametrize("place", range(len(IN_ORDER)), ids=[rule for _, rule, _ in IN_ORDER])
def test_the_first_refusal_wins_over_all_that_follow(place: int) -> None:
    facts = FINE
    for wrong, _, _ in IN_ORDER[place:]:
        facts = wrong(facts)

    assert decide(facts).rule is IN_ORDER[place][1]


@pytest.mark.rule("R002-75", "R002-76", "R002-77")
@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (RoutePolicy.ALLOWED, Outcome.ALLOWED),
        (RoutePolicy.BLOCKED, Outcome.BLOCKED),
        (RoutePolicy.REQUIRES_HUMAN_APPROVAL, Outcome.WAITING),
    ],
)
def test_when_nothing_refuses_the_route_decides_and_its_version_is_told(
    policy: RoutePolicy, outcome: Outcome
) -> None:
    verdict = decide(replace(FINE, route=RouteFacts(policy, 12)))

    assert (verdict.outcome, verdict.rule, verdict.policy_version) == (outcome, Rule.ROUTE, 12)


def test_who_is_stopped_by_the_limit_of_hops_is_told_the_limit() -> None:
    once, twice = (decide(replace(FINE, max_hops=hops, path=(C, D, A))).sentence for hops in (1, 2))

    assert (once, twice) == (
        "A request may be passed on once at most.",
        "A request may be passed on 2 times at most.",
    )


@pytest.mark.rule("U002-15")
@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        (replace(FINE, route=ASKS, waiting=4, waiting_per_agent=5), Rule.ROUTE),
        (replace(FINE, route=ASKS, waiting=5, waiting_per_agent=5), Rule.WAITING_PER_AGENT),
        (replace(FINE, route=ASKS, waiting=5, waiting_per_agent=5, open_runs=3), Rule.RUNS_PER_THREAD),
        (replace(FINE, waiting=5, waiting_per_agent=5), Rule.ROUTE),
        (replace(FINE, route=None, waiting=5, waiting_per_agent=5), Rule.NO_ROUTE),
    ],
)
def test_people_are_asked_no_more_than_they_can_read(facts: DelegationFacts, rule: Rule) -> None:
    verdict = decide(facts)

    assert verdict.rule is rule
    assert (verdict.outcome is Outcome.RATE_LIMITED) == (rule in (Rule.WAITING_PER_AGENT, Rule.RUNS_PER_THREAD))


@pytest.mark.parametrize(("hops", "path", "outcome"), [(1, (A,), Outcome.ALLOWED), (1, (C, A), Outcome.BLOCKED)])
def test_a_hop_is_one_agent_that_passes_a_request_on(
    hops: int, path: tuple[AgentId, ...], outcome: Outcome
) -> None:
    assert decide(replace(FINE, max_hops=hops, path=path)).outcome is outcome


def test_what_can_not_be_decided_is_blocked() -> None:
    broken = RouteFacts.__new__(RouteFacts)

    assert decide(replace(FINE, route=broken)) == UNDECIDED
    assert UNDECIDED.outcome is Outcome.BLOCKED


def test_a_digest_is_of_the_value_and_not_of_how_it_is_written() -> None:
    words: dict[str, JsonValue] = {"b": "Grüße \u202e", "a": [1, None]}

    assert digest_of(words) == digest_of({"a": [1, None], "b": "Grüße \u202e"})
    assert digest_of(words) != digest_of(words | {"b": "Grüße"})


def test_a_digest_that_was_taken_years_ago_is_taken_of_the_same_bytes_today() -> None:
    assert canonical({"b": "Grüße", "a": [1, None]}) == '{"a":[1,null],"b":"Grüße"}'.encode()


@pytest.mark.parametrize("state", ApprovalState)
def test_who_asked_is_told_how_the_question_stands_with_a_mark_to_wait_by(state: ApprovalState) -> None:
    asked = ApprovalBrief.model_validate(
        {
            **{"id": ApprovalId.new(), "state": state, "digest": "0" * 64, "expires_at": "2026-01-01T00:00:00Z"},
            **dict.fromkeys(("decided_at", "decided_by", "decision_reason", "run_id")),
        }
    )

    of_person, of_route = Delegation.of(None, asked), Delegation.of(None, None)

    assert (of_route.state, of_route.mark) == (DelegationState.ALLOWED, "allowed")
    assert (of_person.state, of_person.mark) == (STATE_OF[state], STATE_OF[state].value)


@pytest.mark.rule("U002-13")
def test_the_same_request_is_the_same_two_agents_thread_and_words() -> None:
    thread = ThreadId.new()
    digests = {
        request_digest(A, B, thread, "go"),
        request_digest(B, A, thread, "go"),
        request_digest(A, C, thread, "go"),
        request_digest(A, B, ThreadId.new(), "go"),
        request_digest(A, B, thread, "go "),
    }

    assert len(digests) == 5
    assert request_digest(A, B, thread, "go") in digests


def row(run: RunId, parent: RunId | None, depth: int) -> TraceRow:
    at = "2026-01-01T00:00:00Z"
    return TraceRow.model_validate(
        {
            **dict.fromkeys(("approval_id", "agent", "started_at", "ended_at", "seconds")),
            **{"kind": TraceKind.RUN, "depth": depth, "run_id": run, "parent_run_id": parent},
            **{"thread_id": ThreadId.new(), "agent_id": A, "status": "queued", "created_at": at},
        }
    )


def test_a_tree_is_told_from_the_top_each_below_what_asked_for_it() -> None:
    first, second, third, fourth, lost = (RunId.new() for _ in range(5))
    rows = [row(first, None, 0), row(second, first, 1), row(third, first, 1), row(fourth, second, 2)]

    told = list(in_tree_order([*rows, row(lost, RunId.new(), 3)]))

    assert [one.run_id for one in told] == [first, second, fourth, third, lost]

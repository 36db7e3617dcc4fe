"""Policy files and drafts, without a database."""

import time

import pytest
from pydantic import ValidationError

from agent_console.domain.delegation import DelegationFacts, Outcome, RouteFacts, Rule, decide
from agent_console.domain.errors import Invalid, TooLarge
from agent_console.domain.ids import AgentId, AuditId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.policy_files import FileRoute, agent_in_file, read_policy, written_policy
from agent_console.domain.policy_plans import POLICY_FILE_BYTES
from agent_console.domain.route_replays import Recorded, replayed
from agent_console.domain.routes import RouteEdit
from tests.support.fleet import AT

A, B, W = RoutePolicy.ALLOWED, RoutePolicy.BLOCKED, RoutePolicy.REQUIRES_HUMAN_APPROVAL
ROUTE = "- {from: atlas, to: beacon, policy: allowed}"


def file_of(*routes: str) -> str:
    return "format: 1\nroutes:\n" + "".join(f"{route}\n" for route in routes)


def complaints(text: str) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as refused:
        read_policy(text)
    fields = refused.value.details["fields"]
    assert isinstance(fields, list)
    return [(str(item["field"]), str(item["problem"])) for item in fields if isinstance(item, dict)]


def test_a_policy_comes_back_from_its_file_sorted_and_word_for_word() -> None:
    routes = [
        FileRoute("Zoë", "beacon", W, 'says: "no" # not a comment\n\nand a second line '),
        FileRoute("no", "1", A, None),
        FileRoute("beacon", "null", B, "~"),
        FileRoute("a\x1b[31mb", "evil\u202eeman", A, "\u2028"),
    ]

    text = written_policy(routes)
    read = read_policy(text)

    assert [route.from_agent for route in read] == ["a\x1b[31mb", "beacon", "no", "Zoë"]
    assert {(r.from_agent, r.to_agent, r.policy, r.notes) for r in read} == {
        (r.from_agent, r.to_agent, r.policy, r.notes) for r in routes
    }
    assert text.isascii()
    assert "\x1b" not in text
    assert written_policy(read[::-1]) == text
    assert "Zoë" in written_policy(routes[:1])
    assert read_policy(written_policy([])) == ()


def test_a_name_that_looks_like_an_id_is_written_as_the_id_it_has() -> None:
    its_own, another = AgentId.new(), AgentId.new()

    assert agent_in_file(str(another), its_own) == str(its_own)
    assert agent_in_file("agt_short", its_own) == "agt_short"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", "line 1", "begins with the keys"),
        ("- format", "line 1", "begins with the keys"),
        ("format: 2\nroutes: []", "line 1", "format 1 is the only one"),
        ("routes: []", "line 1", '"format" is missing'),
        ("format: 1", "line 1", '"routes" is missing'),
        ("{}", "line 1", '"format" is missing'),
        ("format: [1]\nroutes: []", "line 1", "format 1 is the only one"),
        ("format: 1\n? [routes]\n: []", "line 2", "a key was expected"),
        ("format: 1\nroutes:", "line 2", "an empty one is written []"),
        ("format: 1\nroutes: []\nowner: ana", "line 3", '"owner" is no key of a policy file'),
        ("format: 1\nroutes: []\nroutes: []", "line 3", "twice"),
        (file_of("- atlas"), "line 3", "from, to and policy"),
        (file_of("- [atlas, beacon]"), "line 3", "from, to and policy"),
        (file_of(ROUTE, "- {from: a, to: b, policy: allowed, not: x}"), "line 4", '"not" is no key of a route'),
        (file_of("- from: a\n  from: b\n  to: c\n  policy: allowed"), "line 4", "twice"),
        (file_of("- from: a\n  to: b\n  policy: maybe"), "line 5", '"maybe" is no policy'),
        (file_of("- {from: a, policy: allowed}"), "line 3", 'no "to"'),
        (file_of("- {from: [a], to: b, policy: allowed}"), "line 3", "words"),
        (file_of("- {? [a] : b}"), "line 3", "words"),
        (file_of('- {from: " ", to: b, policy: allowed}'), "line 3", "must not be blank"),
        (file_of('- {from: "a\\0", to: b, policy: allowed}'), "line 3", "NUL"),
        (file_of(f"- {{from: a, to: b, policy: allowed, notes: {'x' * 1001}}}"), "line 3", "1000"),
        (file_of("- {from: &a atlas, to: b, policy: allowed}"), "line 3", "anchors and aliases"),
        (file_of("- {from: *a, to: b, policy: allowed}"), "line 3", "anchors and aliases"),
        (file_of("- {from: !!python/object:os.system a, to: b, policy: allowed}"), "line 3", "tags"),
        (file_of(ROUTE) + "---\nformat: 1\n", "line 4", "one document"),
        (file_of("- {from: a"), "line 4", "not YAML"),
        ("format: 1\n\troutes: []", "line 2", "not YAML: found a tab character that violates indentation"),
        ("format: 1\nroutes: [\x07]", "line 2", "not YAML: control characters are not allowed"),
        (f"# Zoë 𝔘\r\n{file_of(ROUTE)}\r\n# \x07", "line 6", "not YAML: control characters are not allowed"),
    ],
)
def test_what_a_file_may_not_be_is_told_with_its_line(text: str, line: str, said: str) -> None:
    (first, *_) = complaints(text)

    assert first[0] == line, first
    assert said in first[1]


def test_a_control_character_is_told_with_its_line_however_far_down_it_stands() -> None:
    (told,) = complaints(file_of(*[ROUTE] * 10_000, "# Zoë", "\x07"))

    assert told == ("line 10004", "this is not YAML: control characters are not allowed")


def test_only_where_notes_stand_is_nothing_written_as_nothing() -> None:
    (route,) = read_policy(file_of("- {from: null, to: ~, policy: allowed, notes: null}"))
    assert (route.from_agent, route.to_agent, route.notes) == ("null", "~", None)

    for written, kept in (("", None), ("~", None), ('""', None), ('"~"', "~"), ("nightly", "nightly")):
        (route,) = read_policy(file_of(f"- {{from: a, to: b, policy: allowed, notes: {written}}}"))
        assert route.notes == kept, written


def test_a_file_reads_as_a_person_would_write_it() -> None:
    text = written_policy([FileRoute("atlas", "beacon", A, "nightly")])

    assert text.endswith("format: 1\nroutes:\n- from: atlas\n  to: beacon\n  policy: allowed\n  notes: nightly\n")


def test_who_sent_a_wrong_file_is_told_how_many_things_are_wrong() -> None:
    one, two = (file_of(*["- {from: a, to: b, policy: never}"] * count) for count in (1, 2))

    with pytest.raises(Invalid, match="1 thing is wrong"):
        read_policy(one)
    with pytest.raises(Invalid, match="2 things are wrong"):
        read_policy(two)


def test_every_mistake_is_told_at_once() -> None:
    text = file_of("- {from: a, to: b, policy: never}", ROUTE, "- {from: a, too: b, policy: allowed}")

    told = complaints(text)

    assert [line for line, _ in told] == ["line 3", "line 5", "line 5"]


def test_bombs_are_refused_before_they_grow() -> None:
    laughs = "a: &a [x]\n" + "".join(f"b{n}: &b{n} [{', '.join(['*a'] * 9)}]\n" for n in range(50))
    deep = "format: 1\nroutes: " + "[" * 400_000

    for bomb in (laughs, deep, "format: 1\nroutes:\n" + "- " * 400_000):
        begun = time.process_time()
        assert complaints(bomb)
        assert time.process_time() - begun < 5
    assert "begins with the keys" in complaints("#" * POLICY_FILE_BYTES)[0][1]
    with pytest.raises(TooLarge):
        read_policy("#" * (POLICY_FILE_BYTES + 1))


def test_only_what_reached_the_route_comes_out_otherwise() -> None:
    atlas, beacon, ember = AgentId.new(), AgentId.new(), AgentId.new()

    def request(to: AgentId, outcome: Outcome, rule: Rule) -> Recorded:
        return Recorded(AuditId.new(), AT, (atlas, to), outcome, rule.value)

    recorded = [
        request(beacon, Outcome.ALLOWED, Rule.ROUTE),
        request(beacon, Outcome.BLOCKED, Rule.NO_ROUTE),
        request(beacon, Outcome.WAITING, Rule.ROUTE),
        request(beacon, Outcome.BLOCKED, Rule.HOPS),
        request(beacon, Outcome.RATE_LIMITED, Rule.RUNS_PER_THREAD),
        request(ember, Outcome.ALLOWED, Rule.ROUTE),
    ]

    waits, removed = replayed(recorded, {(atlas, beacon): W}), replayed(recorded, {(atlas, beacon): None})

    assert (waits.concerned, waits.stopped_before) == (5, 2)
    assert waits.kinds == {(Outcome.ALLOWED, Outcome.WAITING): 1, (Outcome.BLOCKED, Outcome.WAITING): 1}
    assert removed.kinds == {(Outcome.ALLOWED, Outcome.BLOCKED): 1, (Outcome.WAITING, Outcome.BLOCKED): 1}
    assert [found.outcome for found, _ in removed.changed] == [Outcome.ALLOWED, Outcome.WAITING]


@pytest.mark.parametrize(
    ("draft", "stopped", "after"),
    [(A, 0, Outcome.ALLOWED), (B, 0, Outcome.BLOCKED), (None, 0, Outcome.BLOCKED), (W, 1, None)],
)
def test_too_many_waiting_stop_a_request_only_where_a_person_is_asked(
    draft: RoutePolicy | None, stopped: int, after: Outcome | None
) -> None:
    pair = (AgentId.new(), AgentId.new())
    refused = Recorded(AuditId.new(), AT, pair, Outcome.RATE_LIMITED, Rule.WAITING_PER_AGENT.value)

    found = replayed([refused], {pair: draft})

    assert (found.concerned, found.stopped_before) == (1, stopped)
    assert found.changed == (() if after is None else ((refused, after),))
    facts = DelegationFacts(
        pair[1], pair[:1], None if draft is None else RouteFacts(draft, 1), 1, 1, waiting=1, waiting_per_agent=1
    )
    assert decide(facts).outcome is (after or Outcome.RATE_LIMITED)


@pytest.mark.rule("R002-70", "R002-71")
@pytest.mark.parametrize(
    "wrong",
    [{"policy": "maybe"}, {"from_agent": ""}, {"notes": "x" * 1001}, {"base_version": -1}, {"version": 1}],
)
def test_an_edit_outside_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RouteEdit.model_validate({"from_agent": "atlas", "to_agent": "beacon", "policy": "allowed", **wrong})

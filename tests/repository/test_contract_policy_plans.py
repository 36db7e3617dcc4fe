"""What policy would do before it is made: explained, replayed, planned and applied, through both repositories."""

import asyncio
from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.delegation import Outcome, Rule
from agent_console.domain.errors import Conflict, Invalid, NotFound
from agent_console.domain.ids import AuditId, RunId, ThreadId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.policy_plans import PolicyApplication, PolicyPlan, Step
from agent_console.domain.records import Nothing
from agent_console.domain.route_replays import (
    EXAMPLES_MOST,
    REPLAYED_MOST,
    DraftRoute,
    RouteExplanation,
    RouteQuestion,
    RouteReplay,
)
from agent_console.domain.routes import RouteQuery
from agent_console.repository.operations.routes import (
    ROUTES_APPLY,
    ROUTES_EXPLAIN,
    ROUTES_EXPORT,
    ROUTES_LIST,
    ROUTES_REPLAY,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.repository.test_contract_routes import audited, put
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

A, B, W = RoutePolicy.ALLOWED, RoutePolicy.BLOCKED, RoutePolicy.REQUIRES_HUMAN_APPROVAL


def policy(*routes: tuple[str, str, str]) -> str:
    lines = (f"  - {{from: {of}, to: {to}, policy: {what}}}\n" for of, to, what in routes)
    return "format: 1\nroutes:" + ("\n" + "".join(lines) if routes else " []\n")


async def applied(repository: Repository, text: str, **how: object) -> PolicyPlan:
    request = PolicyApplication.model_validate({"text": text, **how})
    return await repository.call(ROUTES_APPLY, request)


async def pairs(repository: Repository) -> set[tuple[str, str, RoutePolicy]]:
    routes = (await repository.call(ROUTES_LIST, RouteQuery())).items
    return {(route.from_agent, route.to_agent, route.policy) for route in routes}


async def test_a_file_is_planned_then_applied_whole_and_every_route_tells_of_it(
    repository: Repository, fleet: Fleet
) -> None:
    kept = await put(repository, "atlas", "beacon", A)
    edited = await put(repository, "atlas", "ember", A, notes="old")
    gone = await put(repository, "ember", "atlas", B)
    text = policy(
        ("ATLAS", str(kept.to_agent_id), "allowed"), ("atlas", "ember", "blocked"), ("iris", "ember", W.value)
    )
    before = len(audited(fleet))

    plan = await applied(repository, text, dry_run=True)
    untouched = await pairs(repository)
    done = await applied(repository, text, expect_digest=plan.digest, reason="reviewed")
    again = await applied(repository, text)

    assert (plan.applied, plan.apply_id, done.applied) == (False, None, True)
    assert [(s.step, s.from_agent, s.to_agent, s.was, s.becomes, s.old_notes, s.notes) for s in plan.steps] == [
        (Step.UPDATE, "atlas", "ember", A, B, "old", None),
        (Step.DELETE, "ember", "atlas", B, None, None, None),
        (Step.CREATE, "iris", "ember", None, W, None, None),
    ]
    assert (plan.created, plan.updated, plan.deleted, plan.unchanged) == (1, 1, 1, 1)
    assert (done.steps, done.digest) == (plan.steps, plan.digest)
    assert untouched == {("atlas", "beacon", A), ("atlas", "ember", A), ("ember", "atlas", B)}
    assert await pairs(repository) == {("atlas", "beacon", A), ("atlas", "ember", B), ("iris", "ember", W)}
    assert (again.steps, again.unchanged, again.apply_id) == ((), 3, None)
    whole, *each = audited(fleet)[before:]
    assert whole == (
        "a2a.route.apply", done.apply_id, "Ana Costa", "reviewed",
        {"created": 1, "updated": 1, "deleted": 1, "unchanged": 1, "old_digest": plan.digest},
    )  # fmt: skip
    assert [(row[0], row[3]) for row in each] == [
        ("a2a.route.update", "reviewed"), ("a2a.route.delete", "reviewed"), ("a2a.route.create", "reviewed"),
    ]  # fmt: skip
    assert [row[1] for row in each[:2]] == [str(edited.id), str(gone.id)]
    assert all(isinstance(row[4], dict) and row[4]["apply_id"] == done.apply_id for row in each)
    reasons = fleet.execute(
        "select version, removed from a2a_route_versions where reason = 'reviewed' order by 1, 2"
    )
    assert reasons == [(1, False), (2, False), (2, True)]


async def test_an_export_applied_changes_nothing_and_is_the_same_again(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)
    await put(admin, "beacon", "atlas", W, notes='"quoted": yes # no comment')
    await put(admin, "atlas", "beacon", A)
    fleet.execute("update agents set name = 'no' where name = 'atlas'")
    fleet.execute("update agents set name = %s where name = 'beacon'", str(fleet.agent_id("ember")))

    exported = await viewer.call(ROUTES_EXPORT, Nothing())
    plan = await applied(admin, exported.text)

    assert (plan.steps, plan.unchanged, plan.digest) == ((), 2, exported.digest)
    assert (await viewer.call(ROUTES_EXPORT, Nothing())) == exported
    assert exported.text.startswith("# ")
    assert exported.text.endswith("  policy: allowed\n")
    assert "'no'" in exported.text


async def test_a_plan_that_is_no_longer_true_is_not_applied(repository: Repository, fleet: Fleet) -> None:
    await put(repository, "atlas", "beacon", A)
    plan = await applied(repository, policy(), dry_run=True)
    await put(repository, "atlas", "beacon", B, base=1)

    with pytest.raises(Conflict, match="changed after the plan"):
        await applied(repository, policy(), expect_digest=plan.digest)

    assert await pairs(repository) == {("atlas", "beacon", B)}
    assert [row[0] for row in audited(fleet)] == ["a2a.route.create", "a2a.route.update"]


async def test_what_the_file_does_not_name_can_be_kept(repository: Repository) -> None:
    await put(repository, "atlas", "beacon", A)

    plan = await applied(repository, policy(("beacon", "atlas", "blocked")), delete_missing=False)

    assert (plan.created, plan.deleted, plan.unchanged) == (1, 0, 1)
    assert await pairs(repository) == {("atlas", "beacon", A), ("beacon", "atlas", B)}


async def test_everything_that_is_wrong_with_a_file_is_told_and_nothing_is_done(
    repository: Repository, fleet: Fleet
) -> None:
    atlas = str(fleet.agent_id("atlas"))
    text = policy(
        ("atlas", "beacon", "allowed"), ("atlas", "nobody", "allowed"), (atlas, "beacon", "blocked"),
        ("nemo", "ember", "allowed"), ("ember", "EMBER", "allowed"),
    )  # fmt: skip

    with pytest.raises(Invalid) as unknown:
        await applied(repository, text)
    with pytest.raises(Invalid) as unreadable:
        await applied(
            repository, "format: 1\nroutes:\n- {from: atlas, too: beacon, policy: allowed}\n", dry_run=True
        )

    assert unknown.value.details["fields"] == [
        {"field": "line 4", "problem": 'there is no agent "nobody"'},
        {"field": "line 5", "problem": "line 3 is about the same two agents"},
        {"field": "line 6", "problem": 'there is no agent "nemo"'},
        {"field": "line 7", "problem": "an agent needs no route to itself"},
    ]
    assert "line 3" in str(unreadable.value.details)
    assert fleet.one("select count(*) from a2a_routes") == 0
    assert audited(fleet) == []


async def test_two_files_applied_at_once_are_applied_one_after_the_other(open_repository: OpenRepository) -> None:
    first, second = await open_repository(), await open_repository()
    one, two = policy(("atlas", "beacon", "allowed")), policy(("ember", "beacon", "blocked"))
    digest = (await first.call(ROUTES_EXPORT, Nothing())).digest

    outcomes = await asyncio.gather(
        *(applied(repository, text, expect_digest=digest) for repository, text in ((first, one), (second, two))),
        return_exceptions=True,
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "PolicyPlan"]
    assert len(await pairs(first)) == 1


# --- what would happen ---


async def explained(repository: Repository, of: str, to: str, **where: object) -> RouteExplanation:
    question = RouteQuestion.model_validate({"from_agent": of, "to_agent": to, **where})
    return await repository.call(ROUTES_EXPLAIN, question)


def add_run(fleet: Fleet, thread_id: ThreadId, target: str, path: tuple[str, ...] = ()) -> RunId:
    run_id = RunId.new()
    fleet.execute(
        "insert into runs (team_id, id, thread_id, target_agent_id, requested_by_type, requested_by_user_id,"
        " delegation_path) values (%s, %s, %s, %s, 'human', %s, %s)",
        *(fleet.team_id(), run_id, thread_id, fleet.agent_id(target), fleet.user_id(OPERATOR)),
        Jsonb([str(fleet.agent_id(name)) for name in path]),
    )
    return run_id


@pytest.mark.rule("R002-74", "R002-75", "R002-76", "R002-77")
async def test_explain_says_what_the_route_decides(open_repository: OpenRepository) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)
    await put(admin, "atlas", "beacon", A)
    await put(admin, "atlas", "ember", W)
    await put(admin, "atlas", "iris", B)

    told = [await explained(viewer, "Atlas", to) for to in ("beacon", "ember", "iris", "gantry", "juniper")]

    assert [(one.outcome, one.rule, one.policy, one.version) for one in told] == [
        (Outcome.ALLOWED, Rule.ROUTE, A, 1),
        (Outcome.WAITING, Rule.ROUTE, W, 1),
        (Outcome.BLOCKED, Rule.ROUTE, B, 1),
        (Outcome.BLOCKED, Rule.NO_ROUTE, None, None),
        (Outcome.BLOCKED, Rule.TARGET, None, None),
    ]
    assert (told[0].from_agent, told[0].to_agent, told[0].path) == ("atlas", "beacon", (told[0].from_agent_id,))
    assert Rule.ACCESS in told[0].not_asked
    assert (await explained(viewer, "juniper", "atlas")).rule is Rule.ACCESS
    with pytest.raises(NotFound):
        await explained(viewer, "atlas", "nobody")


@pytest.mark.rule("U002-11", "U002-12", "U002-14")
async def test_explain_asks_every_rule_of_a_thread_and_a_run(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator, viewer = [await open_repository(email) for email in ("ana@example.com", OPERATOR, VIEWER)]
    await put(admin, "atlas", "beacon", A)
    thread_id = add_thread(fleet)

    stranger = await explained(operator, "atlas", "beacon", thread_id=thread_id)
    let_in(fleet, thread_id, "atlas", write=True)
    member = await explained(operator, "atlas", "beacon", thread_id=thread_id)
    run_id = add_run(fleet, thread_id, "atlas", ("beacon",))
    back = await explained(operator, "atlas", "beacon", parent_run_id=run_id)
    far_id = add_run(fleet, thread_id, "atlas", ("ember", "iris"))
    far = await explained(operator, "atlas", "beacon", parent_run_id=far_id)
    another = await explained(operator, "atlas", "beacon", parent_run_id=add_run(fleet, thread_id, "gantry"))
    laundered = await explained(operator, "atlas", "beacon")
    fleet.execute("update runs set delegation_path = '[]'")
    crowded = await explained(operator, "atlas", "beacon", thread_id=thread_id)

    assert [one.rule for one in (stranger, member, back, far, another, laundered, crowded)] == [
        Rule.ACCESS, Rule.ROUTE, Rule.PATH, Rule.HOPS, Rule.PARENT, Rule.HOPS, Rule.RUNS_PER_THREAD,
    ]  # fmt: skip
    assert member.not_asked == (Rule.DUPLICATE,)
    assert back.path == (back.to_agent_id, back.from_agent_id)
    for unreadable in ({"thread_id": thread_id}, {"parent_run_id": run_id}, {"parent_run_id": RunId.new()}):
        with pytest.raises(NotFound):
            await explained(viewer, "atlas", "beacon", **unreadable)


# --- what would have happened ---


def record(fleet: Fleet, action: str, rule: str, *, count: int = 1, days_ago: int = 0, to: str = "beacon") -> None:
    """Requests of atlas, as delegating writes them down."""
    fleet.execute(
        """
        insert into audit_log (team_id, id, actor_type, actor_agent_id, actor_label, action, resource_type,
                               resource_id, metadata, event_hash, created_at)
        select %s, overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid, 'agent', %s, 'atlas', %s,
               'agent', 'x', %s, sha256('x'), now() - make_interval(days => %s)
          from generate_series(1, %s)
        """,
        *(fleet.team_id(), fleet.agent_id("atlas"), f"a2a.delegate.{action}"),
        Jsonb(
            {"from_agent_id": str(fleet.agent_id("atlas")), "to_agent_id": str(fleet.agent_id(to)), "rule": rule}
        ),
        *(days_ago, count),
    )


async def test_a_draft_is_replayed_over_what_was_asked(repository: Repository, fleet: Fleet) -> None:
    record(fleet, "allowed", "route", count=30)
    record(fleet, "request", "route", count=3)
    record(fleet, "blocked", "no_route", count=2)
    record(fleet, "blocked", "path")
    record(fleet, "rate_limited", "runs_per_thread")
    record(fleet, "allowed", "route", to="ember")
    draft = DraftRoute(from_agent="ATLAS", to_agent="beacon", policy=B)

    answer = await repository.call(ROUTES_REPLAY, RouteReplay(routes=(draft,)))

    assert (answer.requests, answer.capped, answer.concerned, answer.stopped_before) == (38, False, 37, 2)
    assert answer.changed == 33
    assert [(kind.before, kind.after, kind.count) for kind in answer.kinds] == [
        (Outcome.ALLOWED, Outcome.BLOCKED, 30), (Outcome.WAITING, Outcome.BLOCKED, 3),
    ]  # fmt: skip
    newest = answer.examples[0]
    assert (len(answer.examples), newest.from_agent, newest.to_agent) == (EXAMPLES_MOST, "atlas", "beacon")
    assert isinstance(newest.audit_id, AuditId)
    assert (newest.before, newest.after) == (Outcome.WAITING, Outcome.BLOCKED)
    assert fleet.one("select count(*) from a2a_routes") == 0


async def test_a_replay_looks_at_the_newest_of_a_season_only(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("create table audit_log_past partition of audit_log default")
    record(fleet, "allowed", "route", count=5, days_ago=91)
    record(fleet, "allowed", "route", count=7, days_ago=80)
    draft = RouteReplay(routes=(DraftRoute(from_agent="atlas", to_agent="beacon", policy=None),))

    season = await repository.call(ROUTES_REPLAY, draft)
    record(fleet, "blocked", "route", count=REPLAYED_MOST)
    capped = await repository.call(ROUTES_REPLAY, draft)

    assert (season.requests, season.changed, season.capped) == (7, 7, False)
    assert (capped.requests, capped.changed, capped.capped) == (REPLAYED_MOST, 0, True)
    assert season.since is not None
    assert capped.since is not None
    assert capped.since - season.since > timedelta(days=79)


async def test_a_draft_that_cannot_be_read_is_told_whole(repository: Repository) -> None:
    routes = [("atlas", "nobody"), ("atlas", "beacon"), ("ATLAS", "beacon"), ("nemo", "atlas")]
    draft = tuple(DraftRoute(from_agent=of, to_agent=to, policy=A) for of, to in routes)

    with pytest.raises(Invalid) as refused:
        await repository.call(ROUTES_REPLAY, RouteReplay(routes=draft))

    fields = refused.value.details["fields"]
    assert isinstance(fields, list)
    assert [field["problem"] for field in fields if isinstance(field, dict)] == [
        "route 1: there is no agent nobody",
        "route 3: an earlier one is about the same two agents",
        "route 4: there is no agent nemo",
    ]

"""What a delegation is decided by is the team's own, and the run it is asked for is the right one."""

import asyncio

import psycopg
import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.delegation import NewDelegation
from agent_console.domain.errors import ConsoleError, Forbidden, NotFound
from agent_console.domain.ids import AgentId, ThreadId
from agent_console.repository.operations.runs import RUNS_DELEGATE
from agent_console.repository.port import Repository
from tests.support.asking import ANA, Callers, add_route, asks, set_setting, started
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock

LIMITS = ("max_hops", "runs_per_thread", "duplicate_window_seconds")


def talking(fleet: Fleet) -> ThreadId:
    thread_id = add_thread(fleet, ANA, visibility="shared")
    let_in(fleet, thread_id, "atlas", write=True)
    return thread_id


async def test_the_limits_of_another_team_are_not_ours(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon")
    fleet.add_team("neighbours")
    for name in LIMITS:
        fleet.execute(
            "insert into settings (team_id, name, value) select id, %s, %s from teams where id <> %s",
            *(name, Jsonb(1), fleet.team_id()),
        )
    assert fleet.one("select count(*) from settings") == len(LIMITS)

    made = [await asks(atlas, fleet, thread_id, words=words) for words in ("one", "two", "one")]

    assert [one.repeated for one in made] == [False, False, True]
    assert made[2].run == made[0].run


async def test_of_several_runs_the_one_of_the_same_thread_is_the_parent(crew: Callers, fleet: Fleet) -> None:
    here, there, atlas = talking(fleet), talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon")
    ana = await crew.person(ANA)
    earlier = await started(ana, fleet, here)
    later = await started(ana, fleet, there)

    made = [await asks(atlas, fleet, thread_id) for thread_id in (here, there)]

    assert [None if one.run is None else one.run.parent_run_id for one in made] == [earlier.id, later.id]


async def test_of_several_runs_of_a_thread_the_newest_is_the_parent_unless_one_runs(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, atlas, ana = talking(fleet), await crew.agent("atlas"), await crew.person(ANA)
    add_route(fleet, "atlas", "beacon")
    set_setting(fleet, "runs_per_thread", 10)
    first, second = await started(ana, fleet, thread_id), await started(ana, fleet, thread_id)

    of_newest = await asks(atlas, fleet, thread_id, words="one")
    fleet.execute("update runs set status = 'running', started_at = now() where id = %s", first.id)
    of_running = await asks(atlas, fleet, thread_id, words="two")

    assert [one.run and one.run.parent_run_id for one in (of_newest, of_running)] == [second.id, first.id]


@pytest.mark.rule("U002-13")
@pytest.mark.parametrize(("policy", "table"), [("allowed", "runs"), ("requires_human_approval", "approvals")])
async def test_the_same_again_a_second_after_the_window_is_a_request_of_its_own(
    crew: Callers, fleet: Fleet, policy: str, table: str
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon", policy)
    set_setting(fleet, "duplicate_window_seconds", 30)
    aged = f"update {table} set created_at = now() - make_interval(secs => %s)"

    await asks(atlas, fleet, thread_id)
    fleet.execute(aged, 20)
    within = await asks(atlas, fleet, thread_id)
    fleet.execute(aged, 31)
    after = await asks(atlas, fleet, thread_id)

    assert (within.repeated, after.repeated) == (True, False)
    assert fleet.one(f"select count(*) from {table}") == 2


@pytest.mark.parametrize(("policy", "table"), [("allowed", "runs"), ("requires_human_approval", "approvals")])
async def test_of_several_within_a_widened_window_the_newest_answers(
    crew: Callers, fleet: Fleet, policy: str, table: str
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon", policy)
    set_setting(fleet, "duplicate_window_seconds", 30)
    await asks(atlas, fleet, thread_id)
    fleet.execute(f"update {table} set created_at = now() - interval '31 seconds'")
    newest = await asks(atlas, fleet, thread_id)
    set_setting(fleet, "duplicate_window_seconds", 3600)

    again = await asks(atlas, fleet, thread_id)

    assert (again.repeated, again.run, again.approval) == (True, newest.run, newest.approval)


async def test_a_run_that_has_no_trace_yet_begins_one(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas, ana = talking(fleet), await crew.agent("atlas"), await crew.person(ANA)
    add_route(fleet, "atlas", "beacon")
    root = await started(ana, fleet, thread_id)
    fleet.execute("update runs set trace_id = null")

    made = (await asks(atlas, fleet, thread_id)).run

    assert made is not None
    assert made.parent_run_id == root.id
    assert made.trace_id is not None


@pytest.mark.parametrize(("policy", "table"), [("allowed", "runs"), ("requires_human_approval", "approvals")])
async def test_a_key_that_another_team_used_is_free_in_ours(
    crew: Callers, fleet: Fleet, policy: str, table: str
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon", policy)
    await asks(atlas, fleet, thread_id, words="theirs", key="nightly")
    neighbours = fleet.add_team("neighbours")
    fleet.execute("set session_replication_role = replica")
    fleet.execute(f"update {table} set team_id = %s", neighbours)
    fleet.execute("set session_replication_role = origin")

    ours = await asks(atlas, fleet, thread_id, words="ours", key="nightly")

    assert not ours.repeated
    assert fleet.one(f"select count(*) from {table} where idempotency_key = 'nightly'") == 2


async def refusal_of(
    atlas: Repository, thread_id: ThreadId, to: AgentId
) -> tuple[type[ConsoleError], str, object]:
    with pytest.raises(ConsoleError) as refused:
        await atlas.call(RUNS_DELEGATE, NewDelegation(to=to, thread_id=thread_id, input="Count."))
    return type(refused.value), str(refused.value).replace(str(to), "…"), refused.value.details


async def test_an_agent_of_another_team_a_deleted_one_and_none_at_all_are_answered_alike(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    deleted, theirs = fleet.agent_id("ember"), fleet.agent_id("iris")
    fleet.execute("update agents set deleted_at = now() where id = %s", deleted)
    neighbours = fleet.add_team("neighbours")
    fleet.execute("set session_replication_role = replica")
    fleet.execute("update agents set team_id = %s where id = %s", neighbours, theirs)
    fleet.execute("set session_replication_role = origin")

    answers = [await refusal_of(atlas, thread_id, to) for to in (AgentId.new(), deleted, theirs)]

    assert answers[0][0] is NotFound
    assert answers[0][2] == {"rule": "target", "policy_version": None}
    assert answers[1:] == [answers[0], answers[0]]


@pytest.mark.parametrize(
    ("change", "refusal", "rule"),
    [
        (
            "update agents set revoked_at = now(), revocation_reason = 'lost' where name = 'beacon'",
            NotFound,
            "target",
        ),
        ("update a2a_routes set policy = 'blocked'", Forbidden, "route"),
    ],
    ids=["the agent is revoked", "the route is closed"],
)
async def test_what_is_changed_just_now_is_waited_for_and_counts(
    crew: Callers, fleet: Fleet, change: str, refusal: type[ConsoleError], rule: str
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon")

    async with await psycopg.AsyncConnection.connect(fleet.administration) as administrator:
        await administrator.execute(change.encode())
        asking = asyncio.create_task(asks(atlas, fleet, thread_id))
        await somebody_waits_for_a_lock(fleet, task=asking)
        await administrator.commit()

    with pytest.raises(refusal) as refused:
        await asking
    assert refused.value.details["rule"] == rule


async def test_who_asks_waits_neither_for_others_who_ask_nor_for_an_agent_it_does_not_ask(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, atlas = talking(fleet), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon")

    with psycopg.connect(fleet.administration) as others:
        others.execute("select from agents where name in ('atlas', 'beacon') for share")
        others.execute("select from a2a_routes for share")
        others.execute("select from agents where name = 'ember' for update")
        async with asyncio.timeout(60):
            made = await asks(atlas, fleet, thread_id)

    assert made.run is not None

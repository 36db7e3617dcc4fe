"""What a delegation is decided by is the team's own, and the run it is asked for is the right one."""

import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.ids import ThreadId
from tests.support.asking import ANA, Callers, add_route, asks, set_setting, started
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

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

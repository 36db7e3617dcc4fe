"""What needs attention: one list, over everything that can be in trouble."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from agent_console.domain.agent_changes import AgentRevocation
from agent_console.domain.agents import AgentAsked
from agent_console.domain.attention import AttentionItem, AttentionKind, AttentionQuery
from agent_console.domain.ids import AgentId
from agent_console.domain.jobs import NewJob
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.agents import AGENTS_DELETE, AGENTS_REVOKE
from agent_console.repository.operations.attention import ATTENTION_LIST
from agent_console.repository.port import Repository
from tests.repository.conftest import VIEWER, OpenRepository
from tests.support.fleet import Fleet

pytestmark = pytest.mark.rule("U002-26")


@pytest.fixture
def fleet(story: Fleet) -> Fleet:
    """The fleet with conversations in it, whoever asks for one."""
    return story


async def listed(repository: Repository, limit: int = 50) -> tuple[AttentionItem, ...]:
    page = await repository.call(ATTENTION_LIST, AttentionQuery(limit=limit))
    return page.items


def of_kind(items: tuple[AttentionItem, ...], kind: AttentionKind) -> list[AttentionItem]:
    return [item for item in items if item.kind is kind]


async def test_everything_in_trouble_is_in_one_list_the_newest_danger_first(
    repository: Repository, fleet: Fleet
) -> None:
    fleet.execute("update runs set status = 'timeout', ended_at = now() where status = 'failed'")
    fleet.execute(
        "update agent_runtime set presence = 'offline' where agent_id = %s", fleet.agent_id("cartographer")
    )

    items = await listed(repository)

    assert Counter(item.kind for item in items) == {
        AttentionKind.APPROVAL: 2,
        AttentionKind.DEAD_LETTER: 1,
        AttentionKind.AGENT_ERROR: 1,
        AttentionKind.AGENT_SILENT: 1,
        AttentionKind.RUN_TIMEOUT: 1,
    }
    moments = [item.since for item in items if item.since is not None]
    assert moments == sorted(moments, reverse=True)
    [gantry] = of_kind(items, AttentionKind.AGENT_ERROR)
    assert (gantry.name, gantry.says) == ("gantry", "disk /var/cache is 98 % full")
    assert {item.name for item in of_kind(items, AttentionKind.APPROVAL)} == {
        "dispatch → gantry",
        "cartographer → beacon",
    }


async def test_an_agent_that_fell_silent_counts_only_with_work(repository: Repository, fleet: Fleet) -> None:
    before = {item.name for item in of_kind(await listed(repository), AttentionKind.AGENT_SILENT)}
    fleet.execute(
        "update agent_runtime set presence = 'offline' where agent_id in"
        " (select agent_id from jobs where status = 'running')"
    )

    after = of_kind(await listed(repository), AttentionKind.AGENT_SILENT)

    assert "iris" not in before | {item.name for item in after}, "it never came, and nothing waits for it"
    with_work = {
        str(AgentId(str(row[0])))
        for row in fleet.execute("select distinct agent_id::text from jobs where status = 'running'")
    }
    assert with_work <= {item.id for item in after}
    assert all("in hand" in (item.says or "") for item in after)


async def test_more_than_is_listed_is_said_and_nobody_sees_threads_of_others(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.execute("update threads set visibility = 'private'")
    admin, viewer = await open_repository(), await open_repository(VIEWER)

    few, hers = await listed(admin, limit=1), await listed(viewer)

    [approval] = of_kind(few, AttentionKind.APPROVAL)
    assert approval.more
    assert of_kind(hers, AttentionKind.APPROVAL) == []
    assert of_kind(hers, AttentionKind.AGENT_ERROR) != []


async def test_a_hosted_agent_that_ended_in_an_error_is_in_trouble_though_nothing_waits_for_it(
    repository: Repository, fleet: Fleet
) -> None:
    fleet.execute(
        "update agent_runtime set presence = 'offline', lifecycle = 7, error_message = 'no heartbeat for 90 s',"
        " lifecycle_changed_at = '2099-03-01T02:00Z' where agent_id = %s",
        fleet.agent_id("iris"),
    )
    fleet.execute("update agent_runtime set lifecycle = 7 where agent_id = %s", fleet.agent_id("juniper"))
    waits = NewJob(type="scan", payload={}, bound_agent_id=fleet.agent_id("iris"))
    await repository.call(JOBS_CREATE, waits)

    found = [item for item in await listed(repository) if item.noun == "agents"]

    assert [(item.kind, item.name) for item in found] == [
        (AttentionKind.AGENT_ERROR, "gantry"),
        (AttentionKind.AGENT_ERROR, "iris"),
    ], "juniper is revoked, and of iris it is told once"
    assert (found[1].since, found[1].says) == (datetime(2099, 3, 1, 2, tzinfo=UTC), "no heartbeat for 90 s")


async def test_an_error_of_now_is_not_dated_by_a_move_of_long_ago(repository: Repository, fleet: Fleet) -> None:
    fleet.execute(
        "update agent_runtime set lifecycle = 2, lifecycle_changed_at = '2099-01-01' where agent_id = %s",
        fleet.agent_id("gantry"),
    )

    [gantry] = of_kind(await listed(repository), AttentionKind.AGENT_ERROR)

    assert gantry.since == fleet.one(
        "select last_heartbeat_at from agent_runtime where agent_id = %s", fleet.agent_id("gantry")
    )


@pytest.mark.parametrize("gone", ["revoked", "deleted"])
async def test_jobs_that_only_an_agent_could_take_that_is_gone_are_told(
    repository: Repository, fleet: Fleet, gone: str
) -> None:
    iris = fleet.agent_id("iris")
    for _ in range(2):
        await repository.call(JOBS_CREATE, NewJob(type="scan", payload={}, bound_agent_id=iris))

    if gone == "revoked":
        await repository.call(AGENTS_REVOKE, AgentRevocation(agent_id=iris, reason="its laptop was stolen"))
    else:
        await repository.call(AGENTS_DELETE, AgentAsked(agent_id=iris))

    [told] = of_kind(await listed(repository), AttentionKind.AGENT_SILENT)
    assert (told.id, told.name) == (str(iris), "iris")
    assert (
        fleet.one(f"select {gone}_at - %s < interval '1 ms' from agents where name = 'iris'", told.since) is True
    )
    assert told.says == f"{gone}, with 2 jobs waiting for it alone: rebind or cancel them"
    action = {"revoked": "agent.revoke", "deleted": "agent.deleted"}[gone]
    assert fleet.one("select metadata -> 'waiting' from audit_log where action = %s", action) == 2


async def test_an_agent_that_is_gone_and_left_nothing_behind_is_not_told(
    repository: Repository, fleet: Fleet
) -> None:
    busy = fleet.agent_id("ember")
    fleet.execute("update agent_runtime set presence = 'offline' where agent_id = %s", busy)
    before = {item.id for item in await listed(repository)}

    await repository.call(AGENTS_REVOKE, AgentRevocation(agent_id=busy, reason="its laptop was stolen"))

    assert str(busy) in before
    assert str(busy) not in {item.id for item in await listed(repository)}

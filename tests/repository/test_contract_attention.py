"""What needs attention: one list, over everything that can be in trouble."""

from collections import Counter

import pytest

from agent_console.domain.attention import AttentionItem, AttentionKind, AttentionQuery
from agent_console.domain.ids import AgentId
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

"""Agents and the pool, through both repositories."""

import pytest

from agent_console.domain.agents import AgentAsked, AgentQuery
from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.ids import AgentId
from agent_console.domain.records import Nothing
from agent_console.domain.states import Presence
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST, POOL_STATUS
from agent_console.repository.port import Repository
from tests.repository.conftest import OpenRepository
from tests.support.fleet import Fleet


async def names(repository: Repository, query: AgentQuery) -> list[str]:
    return [agent.name for agent in (await repository.call(AGENTS_LIST, query)).items]


@pytest.mark.rule("R004-56")
async def test_pages_follow_each_other_without_gap_or_repeat(repository: Repository) -> None:
    seen: list[str] = []
    after: str | None = None

    while True:
        page = await repository.call(AGENTS_LIST, AgentQuery(limit=3, after=after))
        seen += [agent.name for agent in page.items]
        after = page.next
        if after is None:
            break

    assert seen == [
        *("atlas", "beacon", "cartographer", "dispatch", "ember"),
        *("fathom", "gantry", "harbor", "iris", "juniper"),
    ]


@pytest.mark.rule("R000-1", "R000-8", "R002-9", "R004-44")
async def test_one_agent_is_shown_whole(repository: Repository, fleet: Fleet) -> None:
    atlas = await repository.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))

    assert str(atlas.id).startswith("agt_")
    assert atlas.name == "atlas"
    assert atlas.capabilities == ("local_filesystem", "tool:photostats:1.2.3")
    assert atlas.profile == {}
    assert (atlas.current_jobs, atlas.max_concurrent_jobs) == (1, 1)
    assert atlas.owner == atlas.created_by == "Ana Costa"


@pytest.mark.rule("R000-29", "R000-31", "R000-32", "R000-16", "R000-25", "R000-26")
async def test_status_is_presence_with_revoked_on_top(repository: Repository) -> None:
    page = await repository.call(AGENTS_LIST, AgentQuery())
    shown = {agent.name: agent for agent in page.items}

    assert shown["atlas"].status is Presence.ONLINE
    assert shown["gantry"].status is Presence.ERROR
    assert shown["gantry"].error_message == "disk /var/cache is 98 % full"
    assert shown["harbor"].status is Presence.OFFLINE
    assert shown["iris"].status is Presence.UNKNOWN
    assert shown["iris"].last_heartbeat_at is None
    assert shown["juniper"].status is Presence.REVOKED
    assert shown["juniper"].revocation_reason == "key found in a log"
    assert shown["juniper"].revoked_at is not None


@pytest.mark.rule("R000-30")
async def test_silence_of_ninety_seconds_is_offline(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '70 seconds'")
    assert await names(repository, AgentQuery(status=Presence.ONLINE)) != []

    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")

    assert await names(repository, AgentQuery(status=Presence.ONLINE)) == []
    assert "atlas" in await names(repository, AgentQuery(status=Presence.OFFLINE))


@pytest.mark.rule("R004-49", "R004-42", "R004-46")
async def test_lists_by_status_owner_and_capability(repository: Repository, fleet: Fleet) -> None:
    assert await names(repository, AgentQuery(status=Presence.ERROR)) == ["gantry"]
    assert len(await names(repository, AgentQuery(owner=fleet.user_id("ana@example.com")))) == 10
    assert await names(repository, AgentQuery(owner=fleet.user_id("ole@example.com"))) == []
    assert await names(repository, AgentQuery(capability="local_filesystem")) == ["atlas", "fathom"]


@pytest.mark.rule("R000-35")
async def test_a_tool_is_found_with_and_without_its_version(repository: Repository) -> None:
    assert await names(repository, AgentQuery(capability="tool:crawler")) == ["beacon", "harbor"]
    assert await names(repository, AgentQuery(capability="tool:crawler:4.0.1")) == ["beacon", "harbor"]
    assert await names(repository, AgentQuery(capability="tool:crawl")) == []
    assert await names(repository, AgentQuery(capability="tool:crawler:4")) == []


@pytest.mark.rule("R000-145", "R000-146", "R000-147")
async def test_the_pool_counts_who_is_online_who_is_idle_and_what_runs(repository: Repository) -> None:
    pool = await repository.call(POOL_STATUS, Nothing())

    assert pool.online_count == 6
    assert pool.idle_count == 2
    assert pool.running_jobs_count == 6
    assert (pool.offline_count, pool.error_count) == (2, 1)
    assert pool.state == "running"


@pytest.mark.rule("R000-148", "R002-1")
async def test_another_teams_pool_is_its_own(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")

    pool = await other.call(POOL_STATUS, Nothing())

    assert (pool.online_count, pool.running_jobs_count) == (0, 0)
    assert pool.state == "offline"


@pytest.mark.rule("U000-33", "R004-63")
async def test_another_teams_agent_answers_like_a_missing_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    atlas, missing = fleet.agent_id("atlas"), AgentId.new()

    with pytest.raises(NotFound) as of_another_team:
        await other.call(AGENTS_GET, AgentAsked(agent_id=atlas))
    with pytest.raises(NotFound) as of_nobody:
        await other.call(AGENTS_GET, AgentAsked(agent_id=missing))

    assert of_another_team.value.body() == {
        **of_nobody.value.body(),
        "message": of_nobody.value.message.replace(str(missing), str(atlas)),
    }
    assert await names(other, AgentQuery()) == []


async def test_a_deleted_agent_is_gone_from_lists(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now() where name = 'atlas'")

    assert "atlas" not in await names(repository, AgentQuery())
    with pytest.raises(NotFound):
        await repository.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))


async def test_a_cursor_of_another_list_is_refused(repository: Repository) -> None:
    with pytest.raises(Invalid) as refused:
        await repository.call(AGENTS_LIST, AgentQuery(after="job_01h455vb4pex5vsknk084sn02q"))

    assert refused.value.details["field"] == "after"

"""Live changes, through both repositories."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_console.domain.errors import Unauthorized
from agent_console.domain.jobs import NewJob
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from tests.repository.conftest import OpenRepository
from tests.support.fleet import Fleet
from tests.support.serving import serving

NEW = NewJob(type="report", payload={})
SOON = 60.0


async def next_of(changes: AsyncIterator[Change]) -> Change:
    async with asyncio.timeout(SOON):
        return await anext(changes)


async def next_named(changes: AsyncIterator[Change]) -> Change:
    """The next notice that is not a call to fetch everything again."""
    while (change := await next_of(changes)) == REFETCH:
        pass
    return change


async def test_a_reader_is_first_told_to_fetch_and_then_what_changed(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    reader, writer = await open_repository(), await open_repository("ole@example.com")
    changes = reader.changes()

    assert await next_of(changes) == REFETCH
    made = await writer.call(JOBS_CREATE, NEW)

    assert await next_named(changes) == Change(topic=Topic.JOBS, id=str(made.id))
    await changes.aclose()


async def test_the_other_team_hears_nothing(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    mine, theirs = await open_repository(), await open_repository("admin@other.example", "other")
    mine_changes, their_changes = mine.changes(), theirs.changes()
    assert await next_of(mine_changes) == await next_of(their_changes) == REFETCH

    await mine.call(JOBS_CREATE, NEW)
    of_theirs = await theirs.call(JOBS_CREATE, NEW)

    assert (await next_named(their_changes)).id == str(of_theirs.id)
    await mine_changes.aclose()
    await their_changes.aclose()


async def test_a_storm_of_changes_is_told_in_few_words(repository: Repository, fleet: Fleet) -> None:
    changes = repository.changes()
    assert await next_of(changes) == REFETCH
    fleet.execute(
        "select pg_notify('agent_console_changes', %s)",
        f'{{"team": "{fleet.team_id()}", "topic": "jobs", "ids": null}}',
    )

    assert await next_named(changes) == Change(topic=Topic.JOBS, id=None)
    await changes.aclose()


async def test_a_notice_that_nobody_understands_means_fetch_again(repository: Repository, fleet: Fleet) -> None:
    changes = repository.changes()
    assert await next_of(changes) == REFETCH

    fleet.execute("select pg_notify('agent_console_changes', 'from a newer version')")

    assert await next_of(changes) == REFETCH
    await changes.aclose()


async def test_a_lost_listening_connection_resumes_and_says_so(repository: Repository, fleet: Fleet) -> None:
    changes = repository.changes()
    assert await next_of(changes) == REFETCH

    fleet.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and query like 'listen%%'"
    )

    assert await next_of(changes) == REFETCH
    made = await repository.call(JOBS_CREATE, NEW)
    assert (await next_named(changes)).id == str(made.id)
    await changes.aclose()


async def test_a_restarted_server_is_found_again(fleet: Fleet) -> None:
    token = fleet.token("ana@example.com")
    async with serving(fleet.working) as url:
        port = int(url.rpartition(":")[2])
        repository = HttpRepository(url, token)
        changes = repository.changes()
        assert await next_of(changes) == REFETCH

    async with serving(fleet.working, port=port):
        assert await next_of(changes) == REFETCH
        made = await repository.call(JOBS_CREATE, NEW)
        assert (await next_named(changes)).id == str(made.id)
    await changes.aclose()
    await repository.close()


@pytest.mark.rule("U001-2")
async def test_revoking_a_token_ends_its_stream(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_console.server.stream.KEEP_ALIVE_SECONDS", 0.1)
    async with serving(fleet.working) as url:
        repository = HttpRepository(url, fleet.token("ana@example.com"))
        changes = repository.changes()
        assert await next_of(changes) == REFETCH

        fleet.execute("update operator_tokens set revoked_at = now()")

        with pytest.raises(Unauthorized):
            await next_of(changes)
        await repository.close()

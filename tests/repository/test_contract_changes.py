"""Live changes, through both repositories."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_console.domain.errors import Unauthorized
from agent_console.domain.ids import ThreadId
from agent_console.domain.jobs import NewJob
from agent_console.domain.messages import NewMessage
from agent_console.domain.threads import ParticipantAsked
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.threads import THREADS_REVOKE
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from tests.repository.conftest import OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.asking import add_route, asks, callers, started
from tests.support.conversations import OTHER, OWNER, add_person, add_thread, let_in
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


def told(topic: Topic, thread_id: ThreadId) -> Change:
    return Change(topic=topic, id=str(thread_id))


async def post(writer: Repository, *thread_ids: ThreadId) -> None:
    for thread_id in thread_ids:
        await writer.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content="Good morning."))


async def heard_until(changes: AsyncIterator[Change], last: Change) -> list[Change]:
    """Everything with a name that was told before the last, which is left out."""
    heard: list[Change] = []
    while (change := await next_of(changes)) != last:
        heard += [] if change.id is None else [change]
    return heard


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


NO_IDS = ('"all of them"', '["../../etc/passwd"]', '["job_\\u0000"]', '[["job_x", {}, 1]]', "[[]]", "7", "{}")


@pytest.mark.rule("U002-22")
async def test_names_that_are_no_ids_are_not_passed_on(repository: Repository, fleet: Fleet) -> None:
    changes = repository.changes()
    assert await next_of(changes) == REFETCH

    for ids in NO_IDS:
        payload = f'{{"team": "{fleet.team_id()}", "topic": "jobs", "ids": {ids}}}'
        fleet.execute("select pg_notify('agent_console_changes', %s)", payload)
        assert await next_of(changes) == Change(topic=Topic.JOBS), ids
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
    monkeypatch.setattr("agent_console.repository.postgres.live.standing.LOOK_AGAIN_SECONDS", 0.1)
    async with serving(fleet.working) as url:
        repository = HttpRepository(url, fleet.token("ana@example.com"))
        changes = repository.changes()
        assert await next_of(changes) == REFETCH

        fleet.execute("update operator_tokens set revoked_at = now()")

        with pytest.raises(Unauthorized):
            await next_of(changes)
        await repository.close()


@pytest.mark.rule("U002-22", "R002-133")
async def test_of_a_private_thread_only_its_readers_hear(open_repository: OpenRepository, fleet: Fleet) -> None:
    add_person(fleet)
    private, open_to_all = add_thread(fleet), add_thread(fleet, visibility="shared")
    owner, stranger = await open_repository(OWNER), await open_repository(OTHER)
    owner_hears, stranger_hears = owner.changes(), stranger.changes()
    assert await next_of(owner_hears) == await next_of(stranger_hears) == REFETCH

    await post(owner, private)
    assert await next_named(owner_hears) == told(Topic.MESSAGES, private)
    await post(owner, open_to_all)

    assert await heard_until(stranger_hears, told(Topic.MESSAGES, open_to_all)) == []
    await owner_hears.aclose()
    await stranger_hears.aclose()


@pytest.mark.rule("U002-22")
async def test_who_is_taken_out_of_a_thread_hears_no_more_of_it(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    private, open_to_all = add_thread(fleet), add_thread(fleet, visibility="shared")
    part = let_in(fleet, private, OTHER)
    owner, guest = await open_repository(OWNER), await open_repository(OTHER)
    changes = guest.changes()
    assert await next_of(changes) == REFETCH
    await post(owner, private)
    assert await next_named(changes) == told(Topic.MESSAGES, private)

    await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=private, participant_id=part))
    await post(owner, private, open_to_all)

    assert await heard_until(changes, told(Topic.MESSAGES, open_to_all)) == []
    await changes.aclose()


@pytest.mark.rule("U002-22")
async def test_rights_that_were_taken_without_a_word_are_gone_soon(
    open_repository: OpenRepository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.live.standing.LOOK_AGAIN_SECONDS", 0.1)
    add_person(fleet, role="admin")
    private, open_to_all = add_thread(fleet), add_thread(fleet, visibility="shared")
    owner, demoted = await open_repository(OWNER), await open_repository(OTHER)
    changes = demoted.changes()
    assert await next_of(changes) == REFETCH

    fleet.execute("update users set role = 'viewer' where email = %s", OTHER)

    assert await next_of(changes) == REFETCH
    await post(owner, private, open_to_all)
    assert await heard_until(changes, told(Topic.MESSAGES, open_to_all)) == []
    fleet.execute("update users set is_active = false where email = %s", OTHER)
    with pytest.raises(Unauthorized):
        await next_named(changes)


@pytest.mark.rule("U002-22")
async def test_an_agent_hears_of_its_own_threads_and_of_nothing_else(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    theirs, its_own = add_thread(fleet, visibility="shared"), add_thread(fleet)
    let_in(fleet, its_own, "atlas")
    owner = await open_repository(OWNER)
    async with acting_agent(owner, fleet) as atlas:
        changes = atlas.changes()
        assert await next_of(changes) == REFETCH

        await owner.call(JOBS_CREATE, NEW)
        await post(owner, theirs, its_own)

        assert await heard_until(changes, told(Topic.MESSAGES, its_own)) == []
        await changes.aclose()


@pytest.mark.rule("U002-22")
@pytest.mark.parametrize("kind", ["direct", "http"])
async def test_of_an_approval_the_agent_that_asked_hears_and_the_one_it_asked_does_not(
    fleet: Fleet, kind: str
) -> None:
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    let_in(fleet, thread_id, "beacon")
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    async with callers(fleet, kind) as everybody:
        owner, atlas, beacon = (
            await everybody.person(OWNER),
            await everybody.agent("atlas"),
            await everybody.agent("beacon"),
        )
        atlas_hears, beacon_hears = atlas.changes(), beacon.changes()
        assert await next_of(atlas_hears) == await next_of(beacon_hears) == REFETCH

        asked = await asks(atlas, fleet, thread_id)
        await started(owner, fleet, thread_id, "beacon")
        await post(owner, thread_id)

        assert asked.approval is not None
        waiting = Change(topic=Topic.APPROVALS, id=str(asked.approval.id))
        assert await heard_until(atlas_hears, waiting) == []
        heard = await heard_until(beacon_hears, told(Topic.MESSAGES, thread_id))
        assert {change.topic for change in heard} <= {Topic.RUNS, Topic.THREADS, Topic.WORK}
        await atlas_hears.aclose()
        await beacon_hears.aclose()


@pytest.mark.parametrize("kind", ["direct", "http"])
async def test_of_what_one_agent_asks_another_those_in_the_thread_hear(fleet: Fleet, kind: str) -> None:
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    async with callers(fleet, kind) as everybody:
        owner, atlas = await everybody.person(OWNER), await everybody.agent("atlas")
        changes = owner.changes()
        assert await next_of(changes) == REFETCH

        await asks(atlas, fleet, thread_id)

        await heard_until(changes, told(Topic.MESSAGES, thread_id))
        await changes.aclose()


async def test_what_the_own_process_said_is_told_once(fleet: Fleet) -> None:
    async with callers(fleet, "direct") as everybody:
        repository = await everybody.person()
        changes = repository.changes()
        assert await next_of(changes) == REFETCH

        made = await repository.call(JOBS_CREATE, NEW)
        assert await next_of(changes) == Change(topic=Topic.JOBS, id=str(made.id))

        assert everybody.backend is not None
        await everybody.backend.announcer.close()
        fleet.execute("select pg_notify('agent_console_changes', 'and after that')")
        assert await next_of(changes) == REFETCH
        await changes.aclose()

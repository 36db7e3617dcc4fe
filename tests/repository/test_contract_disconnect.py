"""An agent that says it ends, through both repositories."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_console.domain.agents import Agent, AgentAsked
from agent_console.domain.errors import Forbidden
from agent_console.domain.presence import Condition, Heartbeat
from agent_console.domain.records import Nothing
from agent_console.domain.sessions import NewSession, SessionAsked
from agent_console.domain.states import LIFECYCLE_MOVES, Lifecycle, Presence, SessionStatus
from agent_console.repository.operations import AGENTS_GET, POOL_STATUS
from agent_console.repository.operations.presence import HEARTBEAT_DISCONNECT, HEARTBEAT_SEND
from agent_console.repository.operations.sessions import SESSIONS_GET, SESSIONS_OPEN
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from agent_console.repository.postgres.registry.disconnect import LIFECYCLE_AFTER
from tests.support.acting_agent import acting_agent
from tests.support.fleet import Fleet

SOON = 60.0
L = Lifecycle

HELD = """
    select id, max_attempts - attempt as tries_left from jobs
     where claimed_by = %s and status in ('assigned', 'running') and cancel_requested_at is null
     order by id
"""
GIVEN_BACK = """
    select id, max_attempts - attempt as tries_left from jobs
     where id = any (%s) and status = 'queued' and next_attempt_at is null
       and agent_id is null and claimed_by is null and lease_expires_at is null
     order by id
"""
MOVES = "select action, actor_type, actor_agent_id, metadata, reason from audit_log order by seq"


async def seen(repository: Repository, fleet: Fleet, name: str) -> Agent:
    return await repository.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id(name)))


def put(fleet: Fleet, name: str, lifecycle: Lifecycle, error_message: str | None = None) -> None:
    fleet.execute("update agents set hosted = true where name = %s", name)
    fleet.execute(
        "update agent_runtime set lifecycle = %s, error_message = %s where agent_id = %s",
        *(int(lifecycle), error_message, fleet.agent_id(name)),
    )


async def test_it_is_offline_at_once_and_its_jobs_cost_no_attempt(repository: Repository, fleet: Fleet) -> None:
    held = fleet.execute(HELD, "atlas")
    badge = await repository.call(POOL_STATUS, Nothing())

    async with acting_agent(repository, fleet, "atlas") as atlas:
        answer = await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    gone = await seen(repository, fleet, "atlas")
    after = await repository.call(POOL_STATUS, Nothing())
    assert held
    assert answer.jobs == len(held)
    assert (gone.status, gone.uptime_seconds) == (Presence.OFFLINE, None)
    assert (after.online_count, after.offline_count) == (badge.online_count - 1, badge.offline_count + 1)
    assert fleet.execute(GIVEN_BACK, [job for job, _ in held]) == held
    assert fleet.one("select count(*) from audit_log") == 0


async def test_each_job_tells_why_it_is_back(repository: Repository, fleet: Fleet) -> None:
    told = "select job_id, level from job_events where message like '%% to queued: the agent disconnected'"
    held = fleet.execute(HELD, "atlas")

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    assert sorted(fleet.execute(told), key=str) == sorted([(job, "info") for job, _ in held], key=str)


async def test_a_job_that_was_asked_to_stop_ends_cancelled(repository: Repository, fleet: Fleet) -> None:
    [(job,)] = fleet.execute("select id from jobs where claimed_by = 'ember' and cancel_requested_at is not null")

    async with acting_agent(repository, fleet, "ember") as ember:
        await ember.call(HEARTBEAT_DISCONNECT, Nothing())

    assert fleet.one("select status from jobs where id = %s", job) == "cancelled"


async def test_nobody_elses_jobs_are_touched(repository: Repository, fleet: Fleet) -> None:
    before = fleet.execute(HELD, "ember")

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    assert before
    assert fleet.execute(HELD, "ember") == before


async def test_to_say_it_again_changes_nothing(repository: Repository, fleet: Fleet) -> None:
    everything = "select to_jsonb(r)::text from agent_runtime r order by agent_id"

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())
        before = fleet.execute(everything)
        again = await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    assert again.jobs == 0
    assert fleet.execute(everything) == before


async def test_who_was_never_seen_stays_unknown(repository: Repository, fleet: Fleet) -> None:
    async with acting_agent(repository, fleet, "iris") as iris:
        await iris.call(HEARTBEAT_DISCONNECT, Nothing())

    assert (await seen(repository, fleet, "iris")).status is Presence.UNKNOWN


async def test_it_takes_its_error_along_and_may_come_back(repository: Repository, fleet: Fleet) -> None:
    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_SEND, Heartbeat(status=Condition.ERROR, error_message="no disk"))
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())
        gone = await seen(repository, fleet, "atlas")
        await atlas.call(HEARTBEAT_SEND, Heartbeat())
        back = await seen(repository, fleet, "atlas")

    assert (gone.status, gone.error_message) == (Presence.OFFLINE, None)
    assert back.status is Presence.ONLINE
    assert back.uptime_seconds is not None


async def test_its_sessions_stay_open(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agents set owner_user_id = %s where name = 'atlas'", fleet.user_id("ana@example.com"))
    opened = await repository.call(SESSIONS_OPEN, NewSession(agent_id=fleet.agent_id("atlas")))

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    session = await repository.call(SESSIONS_GET, SessionAsked(session_id=opened.id))
    assert (session.status, session.closed_at) == (SessionStatus.ACTIVE, None)


async def next_named(changes: AsyncIterator[Change]) -> Change:
    async with asyncio.timeout(SOON):
        while (change := await anext(changes)) == REFETCH:
            pass
    return change


@pytest.mark.rule("U000-10")
async def test_readers_of_changes_hear_of_the_agent_and_its_jobs(repository: Repository, fleet: Fleet) -> None:
    changes = repository.changes()
    assert await anext(changes) == REFETCH

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())
        heard = [await next_named(changes) for _ in range(2)]
    await changes.aclose()

    assert {change.topic for change in heard} == {Topic.AGENTS, Topic.JOBS}
    assert str(fleet.agent_id("atlas")) in {change.id for change in heard}


@pytest.mark.rule("U004-1", "U004-14", "U004-17", "R004-48", "R004-65")
@pytest.mark.parametrize(
    ("was", "now", "action"),
    [
        (L.STOPPING, L.STOPPED, "agent.stopped"),
        (L.RUNNING, L.ERROR, "agent.move"),
        (L.IDLE, L.ERROR, "agent.move"),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Lifecycle) else "",
)
async def test_a_hosted_agent_has_stopped_as_asked_or_is_in_error(
    repository: Repository, fleet: Fleet, was: Lifecycle, now: Lifecycle, action: str
) -> None:
    put(fleet, "atlas", was)
    before = await seen(repository, fleet, "atlas")

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    after = await seen(repository, fleet, "atlas")
    facts = {"from": was.name.lower(), "to": now.name.lower()}
    assert (after.lifecycle, after.status) == (now, Presence.OFFLINE)
    assert after.error_message == ("the agent disconnected" if now is L.ERROR else None)
    assert after.updated_at != before.updated_at
    assert fleet.execute(MOVES) == [
        (action, "agent", fleet.agent_id("atlas"), facts, "the agent disconnected"),
    ]


@pytest.mark.rule("U004-1", "U004-14")
@pytest.mark.parametrize("where", [L.PROVISIONING, L.HIBERNATING, L.STOPPED, L.ERROR], ids=lambda at: at.name)
async def test_a_hosted_agent_that_may_be_away_stays_where_it_is(
    repository: Repository, fleet: Fleet, where: Lifecycle
) -> None:
    message = "no image" if where is L.ERROR else None
    put(fleet, "atlas", where, message)

    async with acting_agent(repository, fleet, "atlas") as atlas:
        await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    after = await seen(repository, fleet, "atlas")
    assert (after.lifecycle, after.status, after.error_message) == (where, Presence.OFFLINE, message)
    assert fleet.execute(MOVES) == []


@pytest.mark.rule("U004-1")
def test_it_moves_only_as_the_lifecycle_allows() -> None:
    assert [was for was, now in LIFECYCLE_AFTER.items() if now not in LIFECYCLE_MOVES[was]] == []


@pytest.mark.rule("U000-27")
async def test_a_revoked_agent_is_not_heard(repository: Repository, fleet: Fleet) -> None:
    async with acting_agent(repository, fleet, "atlas") as atlas:
        fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'atlas'")

        with pytest.raises(Forbidden) as refused:
            await atlas.call(HEARTBEAT_DISCONNECT, Nothing())

    assert refused.value.details["reason"] == "revoked"


async def test_a_person_can_not_disconnect(repository: Repository) -> None:
    with pytest.raises(Forbidden):
        await repository.call(HEARTBEAT_DISCONNECT, Nothing())

"""Heartbeats and the badge, through both repositories."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from uuid import UUID

import psycopg
import pytest
from pydantic import ValidationError
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.agents import Agent, AgentAsked
from agent_console.domain.errors import Forbidden, Invalid, WrongId
from agent_console.domain.identity import Caller
from agent_console.domain.ids import JobId, SessionId
from agent_console.domain.presence import Command, CommandName, Condition, Heartbeat
from agent_console.domain.records import Nothing
from agent_console.domain.secrets import Secret
from agent_console.domain.states import Lifecycle, Presence
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import AGENTS_GET, POOL_STATUS
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.registry.presence import BEAT, Beat, beat_facts
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock
from tests.support.serving import serving

OpenAgent = Callable[[str], Awaitable[Repository]]
OK = Heartbeat()


class ShownKey:
    """Identifies by a key, and shows it to whoever can prove many keys at once."""

    def __init__(self, secret: Secret) -> None:
        self.secret = secret

    async def __call__(self, connection: AsyncConnection) -> Caller:
        return await by_token(self.secret)(connection)


def key_of(fleet: Fleet, name: str) -> Secret:
    key = Secret.mint(fleet.team_id(), fleet.agent_id(name))
    fleet.execute("update agents set api_key_hash = %s where name = %s", key.hash, name)
    return key


@pytest.fixture(params=["direct", "shown key", "http"])
async def open_agent(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[OpenAgent]:
    """Opens the repository as an agent of the fleet, in each way its key can be proved."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(fleet.working)) if request.param == "http" else None
        backend = Backend(fleet.working)
        stack.push_async_callback(backend.close)

        async def opened(name: str) -> Repository:
            key = key_of(fleet, name)
            if url is not None:
                return await stack.enter_async_context(HttpRepository(url, key.word))
            identify = ShownKey(key) if request.param == "shown key" else by_token(key)
            return PostgresRepository(backend, identify)

        yield opened


@pytest.fixture
async def operator(fleet: Fleet) -> AsyncIterator[Repository]:
    async with open_direct(fleet.working, team="example") as repository:
        yield repository


def held_job(fleet: Fleet, holder: str) -> JobId:
    found = fleet.one("select id from jobs where claimed_by = %s order by id limit 1", holder)
    assert isinstance(found, UUID)
    return JobId.of(found)


async def seen(operator: Repository, fleet: Fleet, name: str) -> Agent:
    return await operator.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id(name)))


@pytest.mark.rule("R000-16", "R000-18", "R000-29", "R000-30", "U000-1", "R002-7", "R002-8", "R004-28")
async def test_the_first_heartbeat_makes_an_agent_online(
    open_agent: OpenAgent, operator: Repository, fleet: Fleet
) -> None:
    agent = await open_agent("iris")
    before = await seen(operator, fleet, "iris")

    answer = await agent.call(HEARTBEAT_SEND, OK)

    after = await seen(operator, fleet, "iris")
    assert (before.status, before.last_heartbeat_at) == (Presence.UNKNOWN, None)
    assert after.status is Presence.ONLINE
    assert after.last_heartbeat_at is not None
    assert abs((after.last_heartbeat_at - answer.at).total_seconds()) < 0.01
    assert after.uptime_seconds in range(60)
    assert fleet.one("select count(*) from audit_log") == 0


@pytest.mark.rule("R000-17", "R000-31", "R000-47")
async def test_an_error_is_shown_until_the_next_good_heartbeat(
    open_agent: OpenAgent, operator: Repository, fleet: Fleet
) -> None:
    agent = await open_agent("atlas")

    await agent.call(HEARTBEAT_SEND, Heartbeat(status=Condition.ERROR, error_message="no disk, password=hunter2"))
    ill = await seen(operator, fleet, "atlas")
    await agent.call(HEARTBEAT_SEND, OK)
    well = await seen(operator, fleet, "atlas")

    assert ill.status is Presence.ERROR
    assert ill.error_message == "no disk, password=«redacted»"
    assert (well.status, well.error_message) == (Presence.ONLINE, None)


@pytest.mark.rule("R000-19", "R000-33", "R000-48", "U000-14")
async def test_what_a_heartbeat_does_not_name_stays_as_it_was(
    open_agent: OpenAgent, operator: Repository, fleet: Fleet
) -> None:
    agent = await open_agent("atlas")

    await agent.call(
        HEARTBEAT_SEND, Heartbeat(capabilities=(" gpu ", "gpu", "tool:x:1"), metrics={"cpu": 0.5, "q": 7})
    )
    told = await seen(operator, fleet, "atlas")
    await agent.call(HEARTBEAT_SEND, OK)
    kept = await seen(operator, fleet, "atlas")
    await agent.call(HEARTBEAT_SEND, Heartbeat(capabilities=()))
    emptied = await seen(operator, fleet, "atlas")

    assert told.capabilities == kept.capabilities == ("gpu", "tool:x:1")
    assert told.metrics == kept.metrics == {"cpu": 0.5, "q": 7}
    assert emptied.capabilities == ()


@pytest.mark.rule("R000-28")
async def test_heartbeats_leave_the_agent_itself_untouched(open_agent: OpenAgent, fleet: Fleet) -> None:
    agent = await open_agent("atlas")
    before = fleet.one("select to_jsonb(a) from agents a where name = 'atlas'")

    for _ in range(3):
        await agent.call(HEARTBEAT_SEND, Heartbeat(metrics={"cpu": 0.1}))

    assert fleet.one("select to_jsonb(a) from agents a where name = 'atlas'") == before


@pytest.mark.rule("U004-11", "U000-14")
async def test_a_heartbeat_renews_the_leases_it_names_and_only_its_own(
    open_agent: OpenAgent, fleet: Fleet
) -> None:
    agent = await open_agent("atlas")
    mine = held_job(fleet, "atlas")
    other = held_job(fleet, "ember")
    fleet.execute("update jobs set lease_expires_at = now() + interval '50 seconds' where claimed_by is not null")

    answer = await agent.call(HEARTBEAT_SEND, Heartbeat(current_jobs=(mine, other, JobId.new())))

    left = "select extract(epoch from lease_expires_at - now())::int from jobs where id = %s"
    assert fleet.one(left, mine) in range(90, 121)
    assert fleet.one(left, other) in range(51)
    assert answer.next_in_seconds == 10


@pytest.mark.rule("U004-11")
async def test_the_answer_says_when_to_come_back_and_what_to_do(open_agent: OpenAgent, fleet: Fleet) -> None:
    resting, drained, working = [await open_agent(name) for name in ("beacon", "fathom", "ember")]
    cancelled = fleet.execute("select id from jobs where claimed_by = 'ember' and cancel_requested_at is not null")

    calm = await resting.call(HEARTBEAT_SEND, OK)
    fleet.execute(
        "insert into sessions (team_id, id, agent_id, user_id) values (%s, %s, %s, %s)",
        *(fleet.team_id(), SessionId.new(), fleet.agent_id("beacon"), fleet.user_id("ana@example.com")),
    )
    in_session = await resting.call(HEARTBEAT_SEND, OK)
    told = await drained.call(HEARTBEAT_SEND, OK)
    busy = await working.call(HEARTBEAT_SEND, OK)

    assert (calm.next_in_seconds, calm.commands) == (30, ())
    assert (in_session.next_in_seconds, in_session.commands) == (10, ())
    assert told.commands == (Command(name=CommandName.DRAIN),)
    assert busy.next_in_seconds == 10
    assert [command.name for command in busy.commands] == [CommandName.CANCEL]
    assert busy.commands[0].job_id == cancelled[0][0]


@pytest.mark.rule("R000-32", "U000-27")
async def test_a_revoked_agent_is_not_heard(open_agent: OpenAgent, operator: Repository, fleet: Fleet) -> None:
    agent = await open_agent("atlas")
    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'atlas'")

    with pytest.raises(Forbidden) as refused:
        await agent.call(HEARTBEAT_SEND, OK)

    assert refused.value.details["reason"] == "revoked"
    assert (await seen(operator, fleet, "atlas")).status is Presence.REVOKED


async def test_a_person_has_no_heartbeat(operator: Repository) -> None:
    with pytest.raises(Forbidden):
        await operator.call(HEARTBEAT_SEND, OK)


@pytest.mark.rule("U004-17")
async def test_of_two_heartbeats_at_once_one_starts_the_agent(fleet: Fleet) -> None:
    atlas, backends = fleet.agent_id("atlas"), (Backend(fleet.working), Backend(fleet.working))
    fleet.execute("update agent_runtime set lifecycle = 1 where agent_id = %s", atlas)
    with psycopg.connect(fleet.administration) as holding:
        holding.execute("select from agent_runtime where agent_id = %s for update", (atlas,))
        beats = [
            asyncio.create_task(backend.heartbeats.send(fleet.team_id(), Beat(atlas, OK))) for backend in backends
        ]
        await somebody_waits_for_a_lock(fleet, len(beats))

    await asyncio.gather(*beats)

    assert fleet.one("select count(*) from audit_log where action = 'agent.started'") == 1
    for backend in backends:
        await backend.close()


@pytest.mark.rule("R004-48", "U004-14", "U004-17")
async def test_a_heartbeat_makes_a_provisioned_agent_running_but_heals_no_error(
    open_agent: OpenAgent, operator: Repository, fleet: Fleet
) -> None:
    agent = await open_agent("atlas")
    fleet.execute("update agent_runtime set lifecycle = 1 where agent_id = %s", fleet.agent_id("atlas"))

    await agent.call(HEARTBEAT_SEND, OK)
    running = await seen(operator, fleet, "atlas")
    fleet.execute(
        "update agent_runtime set lifecycle = 7, error_message = 'no image' where agent_id = %s",
        fleet.agent_id("atlas"),
    )
    await agent.call(HEARTBEAT_SEND, OK)
    failed = await seen(operator, fleet, "atlas")

    assert running.lifecycle is Lifecycle.RUNNING
    assert fleet.execute(
        "select actor_label, resource_id, metadata from audit_log where action = 'agent.started'"
    ) == [("atlas", str(running.id), {"from": "provisioning", "to": "running"})]
    assert (failed.lifecycle, failed.error_message, failed.status) == (
        Lifecycle.ERROR,
        "no image",
        Presence.ONLINE,
    )


@pytest.mark.parametrize(
    "said",
    [
        {"status": "offline"},
        {"status": "error"},
        {"status": "online", "error_message": "x"},
        {"metrics": {"cpu": 1.1}},
        {"metrics": {"disk": -0.1}},
        {"metrics": {"load": float("nan")}},
        {"metrics": {f"m{number}": 1 for number in range(21)}},
        {"metrics": {"cpu": "much"}},
        {"capabilities": {"a": 1}},
        {"capabilities": [" "]},
        {"current_jobs": ["agt_01h455vb4pex5vsknk084sn02q"]},
        {"mood": "fine"},
    ],
    ids=str,
)
@pytest.mark.rule("R000-33", "R000-47", "R000-48")
def test_what_is_no_heartbeat_is_refused(said: dict[str, object]) -> None:
    with pytest.raises((ValidationError, WrongId)):
        Heartbeat.model_validate(said)


async def test_many_at_once_each_get_their_own_answer_and_one_mistake_stays_its_own(fleet: Fleet) -> None:
    backend = Backend(fleet.working)
    names = ("atlas", "beacon", "cartographer", "dispatch", "ember", "fathom", "gantry", "harbor")
    callers = [PostgresRepository(backend, ShownKey(key_of(fleet, name))) for name in names]
    mistaken = PostgresRepository(backend, ShownKey(key_of(fleet, "iris")))
    # A copy is not proved: this is what only the database refuses, and with it the whole batch.
    unkept = OK.model_copy(update={"capabilities": ("a\0b",)})

    beats = [caller.call(HEARTBEAT_SEND, OK) for caller in callers for _ in range(5)]
    answers = await asyncio.gather(*beats, mistaken.call(HEARTBEAT_SEND, unkept), return_exceptions=True)
    await backend.close()

    good, bad = answers[:-1], answers[-1]
    assert isinstance(bad, Invalid)
    assert not [answer for answer in good if isinstance(answer, BaseException)]
    online = fleet.execute(
        "select count(*) from agent_runtime where last_heartbeat_at > now() - interval '1 minute'"
        " and last_heartbeat_at < '2090-01-01'"
    )
    assert online == [(len(names),)]


@pytest.mark.rule("R000-28")
def test_a_living_agents_heartbeat_stays_within_its_page(fleet: Fleet) -> None:
    said = Heartbeat(metrics={"cpu": 0.2}, capabilities=("gpu",))
    beats = json.dumps([Beat(fleet.agent_id(name), said).row() for name in ("atlas", "beacon")])
    counted = text("select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'agent_runtime'")

    with create_engine(sqlalchemy_url(fleet.administration), poolclass=NullPool).connect() as connection:
        # The first moves them into this minute; the clock stands still for the second.
        for _ in range(2):
            connection.execute(BEAT, beat_facts(fleet.team_id(), beats, 2))
        written = tuple(connection.execute(counted).one())

    assert written == (4, 2)


@pytest.mark.rule("R000-145", "R000-146")
async def test_the_badge_follows_every_way_an_agent_comes_or_goes(
    open_agent: OpenAgent, operator: Repository, fleet: Fleet
) -> None:
    async def counts() -> tuple[int, int, int]:
        pool = await operator.call(POOL_STATUS, Nothing())
        return pool.online_count, pool.error_count, pool.offline_count

    before = await counts()
    agent = await open_agent("harbor")
    await agent.call(HEARTBEAT_SEND, OK)
    came = await counts()
    await agent.call(HEARTBEAT_SEND, Heartbeat(status=Condition.ERROR, error_message="x"))
    ill = await counts()
    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'harbor'")
    revoked = await counts()
    fleet.execute("update agents set deleted_at = now() where name in ('harbor', 'atlas')")
    deleted = await counts()

    assert (before, came, ill) == ((6, 1, 2), (7, 1, 1), (6, 2, 1))
    assert (revoked, deleted) == ((6, 1, 1), (5, 1, 1))

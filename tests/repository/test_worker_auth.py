"""What an agent's key and a worker's token prove, directly and through a server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.database.roles import APP, READ_ONLY
from agent_console.domain.errors import ConsoleError, Forbidden, NotFound, Unauthorized
from agent_console.domain.identity import AuthSource, Caller, Myself, WorkerAuthContext
from agent_console.domain.ids import AgentId, Id, OperatorTokenId, TeamId, UserId, WorkerTokenId
from agent_console.domain.permissions import Permission, Role
from agent_console.domain.records import Nothing
from agent_console.domain.registration import KeyRotation
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import OperatorTokenQuery, WorkerTokenAsked, WorkerTokenRotation
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_LIST, ME
from agent_console.repository.operations.credentials import (
    AGENTS_ROTATE_KEY,
    OPERATOR_TOKENS_LIST,
    WORKER_TOKENS_REVOKE,
    WORKER_TOKENS_ROTATE,
)
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from agent_console.repository.postgres.identify import by_token, require_worker
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.repository.conftest import ADMIN
from tests.repository.test_contract_registration import mint as mint_registration
from tests.repository.test_contract_registration import register
from tests.repository.test_contract_tokens import mint
from tests.support.fleet import Fleet
from tests.support.serving import serving

OpenWith = Callable[[str], Awaitable[Repository]]


@pytest.fixture(params=["direct", "http"])
async def open_with(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[OpenWith]:
    """Opens the repository for whoever holds a secret."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(fleet.working)) if request.param == "http" else None

        async def opened(word: str) -> Repository:
            repository: Repository
            if url is None:
                identify = by_token(Secret.parse(word))
                repository = PostgresRepository(Backend(fleet.working), identify, owns_backend=True)
            else:
                repository = HttpRepository(url, word)
            return await stack.enter_async_context(repository)

        yield opened


@pytest.fixture
async def admin(fleet: Fleet) -> AsyncIterator[Repository]:
    async with open_direct(fleet.working, user=ADMIN) as repository:
        yield repository


@pytest.fixture
async def key(admin: Repository) -> str:
    """The key of a newly registered agent, kestrel."""
    token = (await mint_registration(admin)).secret
    return (await register(admin, token, worker_id="wrk-1", capabilities=["gpu", "git"])).secret


def agent_of(key: str) -> AgentId:
    owner = Secret.parse(key).owner
    assert isinstance(owner, AgentId)
    return owner


async def whoami(repository: Repository) -> Myself:
    return await repository.call(ME, Nothing())


async def refused(repository: Repository) -> ConsoleError:
    with pytest.raises((Unauthorized, Forbidden)) as refusal:
        await whoami(repository)
    return refusal.value


@pytest.mark.rule("R001-25", "R001-26", "R001-27", "R001-28", "R001-29", "R001-30", "R000-125")
async def test_a_key_acts_as_its_agent(open_with: OpenWith, key: str, fleet: Fleet) -> None:
    me = await whoami(await open_with(key))

    assert (me.name, me.role, me.agent_id) == ("kestrel", Role.AGENT, agent_of(key))
    assert me.user_id == fleet.one("select system_user_id from agents where name = 'kestrel'")
    assert me.auth_source is AuthSource.API_KEY
    assert me.worker == WorkerAuthContext(
        worker_id="wrk-1", auth_source=AuthSource.API_KEY, capabilities=frozenset({"gpu", "git"})
    )


@pytest.mark.rule("R001-10", "R001-26", "R001-27", "R001-28", "R001-29", "R001-30", "R001-7")
async def test_a_worker_token_brings_its_own_policy(
    open_with: OpenWith, key: str, admin: Repository, fleet: Fleet
) -> None:
    narrow = await mint(admin, "wrk-1", allowed_repositories=["org/a"], allowed_job_types=[], capabilities=["git"])
    wide = await mint(admin, "wrk-1")
    bare = await mint(admin, "wrk-1", capabilities=[])

    contexts = [(await whoami(await open_with(token.secret))).worker for token in (narrow, wide, bare)]

    source = AuthSource.WORKER_TOKEN
    assert contexts == [
        WorkerAuthContext(
            worker_id="wrk-1",
            auth_source=source,
            allowed_repositories=frozenset({"org/a"}),
            allowed_job_types=frozenset(),
            capabilities=frozenset({"git"}),
        ),
        WorkerAuthContext(worker_id="wrk-1", auth_source=source, capabilities=frozenset({"gpu", "git"})),
        WorkerAuthContext(worker_id="wrk-1", auth_source=source, capabilities=frozenset()),
    ]


@pytest.mark.rule("R001-12", "R001-25", "U001-1")
async def test_unknown_wrong_and_ended_credentials_answer_alike(
    open_with: OpenWith, key: str, admin: Repository, fleet: Fleet
) -> None:
    team_id = fleet.team_id()
    inactive, expired = await mint(admin, "wrk-1"), await mint(admin, "wrk-1")
    await admin.call(WORKER_TOKENS_REVOKE, WorkerTokenAsked(token_id=inactive.id))
    fleet.execute("update worker_tokens set expires_at = now() where id = %s", expired.id)
    unknown: tuple[Id, ...] = (AgentId.new(), WorkerTokenId.new(), OperatorTokenId.new())
    wrong: tuple[Id, ...] = (agent_of(key), expired.id)
    words = [Secret.mint(team_id, owner).word for owner in (*unknown, *wrong)]
    elsewhere = Secret.mint(TeamId.new(), agent_of(key)).word

    answers = [
        (await refused(await open_with(word))).body()
        for word in (*words, inactive.secret, expired.secret, elsewhere)
    ]

    assert answers[0]["code"] == "unauthorized"
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.rule("R001-12", "U001-2")
async def test_a_revoked_worker_token_ends_at_once(open_with: OpenWith, key: str, admin: Repository) -> None:
    token = await mint(admin, "wrk-1")
    worker = await open_with(token.secret)
    assert (await whoami(worker)).name == "kestrel"

    await admin.call(WORKER_TOKENS_REVOKE, WorkerTokenAsked(token_id=token.id))

    assert isinstance(await refused(worker), Unauthorized)


async def test_a_revoked_agent_is_told_and_a_deleted_one_is_not_known(
    open_with: OpenWith, key: str, admin: Repository, fleet: Fleet
) -> None:
    holders = [await open_with(word) for word in (key, (await mint(admin, "wrk-1")).secret)]

    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'kestrel'")
    revoked = [await refused(holder) for holder in holders]
    fleet.execute("update agents set deleted_at = now() where name = 'kestrel'")
    deleted = [await refused(holder) for holder in holders]

    assert [(error.code, error.details["reason"]) for error in revoked] == [("forbidden", "revoked")] * 2
    assert [error.code for error in deleted] == ["unauthorized"] * 2


async def test_a_wrong_key_of_a_revoked_agent_is_not_told_so(open_with: OpenWith, fleet: Fleet) -> None:
    guessed = Secret.mint(fleet.team_id(), fleet.agent_id("juniper")).word

    assert isinstance(await refused(await open_with(guessed)), Unauthorized)


async def test_an_old_key_works_until_its_overlap_ends(open_with: OpenWith, key: str, fleet: Fleet) -> None:
    old = await open_with(key)

    minted = await old.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=agent_of(key), overlap_seconds=60))

    new = await open_with(minted.secret)
    assert [(await whoami(holder)).name for holder in (old, new)] == ["kestrel", "kestrel"]
    fleet.execute("update agents set previous_key_ends_at = now() where name = 'kestrel'")
    assert isinstance(await refused(old), Unauthorized)
    assert (await whoami(new)).name == "kestrel"
    actor = fleet.execute("select actor_type, actor_agent_id from audit_log where action = 'agent.rotate_key'")
    assert actor == [("agent", agent_of(key))]


async def test_without_an_overlap_the_old_key_is_dead(open_with: OpenWith, key: str) -> None:
    old = await open_with(key)

    minted = await old.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=agent_of(key)))

    assert isinstance(await refused(old), Unauthorized)
    assert (await whoami(await open_with(minted.secret))).name == "kestrel"


async def test_an_agent_exchanges_only_its_own_key_and_only_with_it(
    open_with: OpenWith, key: str, admin: Repository, fleet: Fleet
) -> None:
    agent, worker = await open_with(key), await open_with((await mint(admin, "wrk-1")).secret)

    for other in (fleet.agent_id("atlas"), AgentId.new()):
        with pytest.raises(NotFound):
            await agent.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=other))
    with pytest.raises(Forbidden):
        await worker.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=agent_of(key)))

    assert (await whoami(agent)).name == "kestrel"


async def test_a_rotated_worker_token_works_until_its_overlap_ends(
    open_with: OpenWith, key: str, admin: Repository, fleet: Fleet
) -> None:
    first = await mint(admin, "wrk-1")
    second = await admin.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=first.id, overlap_seconds=60))
    old, new = await open_with(first.secret), await open_with(second.secret)
    assert [(await whoami(holder)).name for holder in (old, new)] == ["kestrel", "kestrel"]

    fleet.execute("update worker_tokens set expires_at = now() where id = %s", first.id)

    assert isinstance(await refused(old), Unauthorized)
    assert (await whoami(new)).name == "kestrel"


async def test_a_registration_token_opens_nothing_else(fleet: Fleet, admin: Repository) -> None:
    word = (await mint_registration(admin)).secret

    async with serving(fleet.working) as url, HttpRepository(url, word) as repository:
        error = await refused(repository)

    assert isinstance(error, Unauthorized)
    with pytest.raises(Unauthorized):
        by_token(Secret.parse(word))


async def test_an_agent_has_no_operators_rights(open_with: OpenWith, key: str) -> None:
    agent = await open_with(key)

    with pytest.raises(Forbidden) as error:
        await agent.call(JOBS_LIST, JOBS_LIST.request())
    with pytest.raises(Forbidden):
        await agent.call(OPERATOR_TOKENS_LIST, OperatorTokenQuery())

    assert error.value.details["permission"] == Permission.SEE_FLEET


@pytest.mark.rule("R001-31", "U001-1")
@pytest.mark.parametrize("worker_id", ["another", "WRK-1", ""])
def test_a_request_in_the_name_of_another_worker_is_refused(worker_id: str) -> None:
    context = WorkerAuthContext(worker_id="wrk-1", auth_source=AuthSource.WORKER_TOKEN)
    person = Caller(
        team_id=TeamId.new(),
        team="example",
        user_id=UserId.new(),
        name="kestrel",
        role=Role.AGENT,
        auth_source=AuthSource.WORKER_TOKEN,
    )
    agent = person.model_copy(update={"agent_id": AgentId.new(), "worker": context})

    assert require_worker(agent, "wrk-1") == context
    for caller, named in ((agent, worker_id), (person, "wrk-1")):
        with pytest.raises(Forbidden):
            require_worker(caller, named)


@pytest.mark.rule("R000-131")
async def test_a_token_of_a_system_user_made_by_hand_opens_nothing(open_with: OpenWith, fleet: Fleet) -> None:
    word = fleet.token(ADMIN)
    fleet.execute("update operator_tokens set user_id = (select system_user_id from agents where name = 'atlas')")

    assert isinstance(await refused(await open_with(word)), Unauthorized)


@pytest.mark.rule("R004-41")
async def test_a_person_is_seen_at_most_once_a_minute(open_with: OpenWith, fleet: Fleet) -> None:
    fleet.execute("update users set last_seen_at = null")
    person = await open_with(fleet.token(ADMIN))

    def seen() -> list[tuple[object, ...]]:
        return fleet.execute(
            "select u.last_seen_at, k.last_used_at, u.last_seen_at > now() - interval '1 minute',"
            " k.last_used_at > now() - interval '1 minute' from users u join operator_tokens k on k.user_id = u.id"
        )

    await whoami(person)
    first = seen()
    await whoami(person)
    again = seen()
    fleet.execute("update users set last_seen_at = last_seen_at - interval '1 hour' where email = %s", ADMIN)
    fleet.execute("update operator_tokens set last_used_at = last_used_at - interval '1 hour'")
    await whoami(person)

    assert first[0][2:] == (True, True)
    assert again == first
    assert seen()[0][2:] == (True, True)


@pytest.mark.rule("R004-41")
@pytest.mark.parametrize("limit", [f"-c role={READ_ONLY}", f"-c role={APP} -c default_transaction_read_only=on"])
async def test_a_direct_session_is_seen_and_one_that_may_not_write_still_reads(fleet: Fleet, limit: str) -> None:
    fleet.execute("update users set last_seen_at = null")
    async with open_direct(make_conninfo(fleet.administration, options=limit)) as reader:
        assert (await whoami(reader)).name == "Ana Costa"
    unseen = fleet.one("select last_seen_at from users where email = %s", ADMIN)

    async with open_direct(fleet.working) as person:
        await whoami(person)

    assert unseen is None
    assert fleet.one("select last_seen_at is not null from users where email = %s", ADMIN) is True


@pytest.mark.rule("R004-41")
async def test_being_seen_waits_for_nobody(open_with: OpenWith, fleet: Fleet) -> None:
    person = await open_with(fleet.token(ADMIN))
    with psycopg.connect(fleet.administration) as writer:
        writer.execute("select from users where email = %s for update", (ADMIN,))
        writer.execute("select from operator_tokens for update")

        async with asyncio.timeout(60):
            me = await whoami(person)

    assert me.name == "Ana Costa"


async def test_the_fleets_changes_are_not_for_agents(fleet: Fleet, admin: Repository, key: str) -> None:
    token = await mint(admin, "wrk-1")
    for_everybody = '{"team": "%s", "topic": "%s", "ids": null}'
    async with serving(fleet.working) as url, asyncio.timeout(60):
        for credential in (key, token.secret):
            async with HttpRepository(url, credential) as agent, aclosing(agent.changes()) as changes:
                # Another one comes when the server begins to listen: what was said before that nobody has heard.
                while (heard := await anext(changes)) == REFETCH:
                    for topic in ("jobs", "agents", "work"):
                        payload = for_everybody % (fleet.team_id(), topic)
                        fleet.execute("select pg_notify('agent_console_changes', %s)", payload)

                assert heard == Change(topic=Topic.WORK)

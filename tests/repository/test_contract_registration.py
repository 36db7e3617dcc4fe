"""How agents come in, through both repositories."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import ValidationError

from agent_console.domain.agents import AgentAsked
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, NotFound, Unauthorized
from agent_console.domain.ids import RegistrationTokenId
from agent_console.domain.registration import AgentRegistration, KeyRotation, Registered
from agent_console.domain.secrets import Secret
from agent_console.domain.states import Presence
from agent_console.domain.tokens import (
    MintedRegistrationToken,
    NewRegistrationToken,
    RegistrationTokenAsked,
    RegistrationTokenQuery,
    RegistrationTokenState,
)
from agent_console.repository.operations import AGENTS_GET
from agent_console.repository.operations.credentials import (
    AGENTS_REGISTER,
    AGENTS_ROTATE_KEY,
    REGISTRATION_TOKENS_LIST,
    REGISTRATION_TOKENS_MINT,
    REGISTRATION_TOKENS_REVOKE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN, OPERATOR, OpenRepository
from tests.support.fleet import Fleet

NONCE = "nonce-0123456789abcdef"
OTHER_NONCE = "another-0123456789abcdef"


async def mint(repository: Repository, **wanted: object) -> MintedRegistrationToken:
    return await repository.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken.model_validate(wanted))


async def register(
    repository: Repository, token: str, name: str = "kestrel", *, nonce: str = NONCE, **facts: object
) -> Registered:
    wanted = {"token": token, "name": name, "nonce": nonce, **facts}
    return await repository.call(AGENTS_REGISTER, AgentRegistration.model_validate(wanted))


def audited(fleet: Fleet) -> list[str]:
    return [str(action) for (action,) in fleet.execute("select action from audit_log order by seq")]


@pytest.mark.rule("R000-2", "R000-51", "R000-53", "R000-56", "R000-58", "R000-59", "R000-65")
async def test_a_fresh_token_lasts_a_day(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository, name="edge rollout")

    assert str(minted.id).startswith("art_")
    assert minted.state is RegistrationTokenState.FRESH
    assert minted.expires_at - minted.created_at == timedelta(hours=24)
    assert (minted.name, minted.created_by) == ("edge rollout", "Ana Costa")
    assert fleet.one("select is_used from registration_tokens") is False
    assert audited(fleet) == ["registration_token.mint"]


@pytest.mark.rule("R000-54", "U001-2")
async def test_the_secret_is_shown_once_and_kept_nowhere(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)

    listed = await repository.call(REGISTRATION_TOKENS_LIST, RegistrationTokenQuery())

    tail = Secret.parse(minted.secret).word[-40:]
    assert tail not in listed.model_dump_json()
    assert tail not in repr(minted)
    assert listed.items[0].token_prefix == Secret.parse(minted.secret).shown_prefix
    for table in ("registration_tokens", "audit_log"):
        assert fleet.one(f"select count(*) from {table} t where t::text like %s", f"%{tail}%") == 0, table


@pytest.mark.rule("U000-48", "R000-55")
@pytest.mark.parametrize("refused", [{"hours": 0}, {"hours": 169}, {"name": "x" * 101}, {"name": ""}])
def test_a_token_outside_its_bounds_is_refused(refused: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NewRegistrationToken.model_validate(refused)


@pytest.mark.rule("U000-48")
@pytest.mark.parametrize("hours", [1, 168])
async def test_a_token_lives_an_hour_to_a_week(repository: Repository, hours: int) -> None:
    minted = await mint(repository, hours=hours)

    assert minted.expires_at - minted.created_at == timedelta(hours=hours)


async def test_tokens_are_listed_newest_first_in_pages_with_their_states(
    repository: Repository, fleet: Fleet
) -> None:
    used, expired, revoked, fresh = [await mint(repository) for _ in range(4)]
    agent = (await register(repository, used.secret)).agent
    fleet.execute(
        "update registration_tokens set created_at = now() - interval '2 days', expires_at = now() where id = %s",
        expired.id,
    )
    await repository.call(REGISTRATION_TOKENS_REVOKE, RegistrationTokenAsked(token_id=revoked.id))

    first = await repository.call(REGISTRATION_TOKENS_LIST, RegistrationTokenQuery(limit=3))
    rest = await repository.call(REGISTRATION_TOKENS_LIST, RegistrationTokenQuery(limit=3, after=first.next))

    tokens = [*first.items, *rest.items]
    assert [token.id for token in tokens] == [fresh.id, revoked.id, expired.id, used.id]
    assert [token.state.value for token in tokens] == ["fresh", "revoked", "expired", "used"]
    assert (tokens[3].used_by_agent_id, tokens[3].used_by) == (agent.id, "kestrel")
    assert rest.next is None


@pytest.mark.rule("U002-5")
async def test_revoking_twice_is_one_change(repository: Repository, fleet: Fleet) -> None:
    asked = RegistrationTokenAsked(token_id=(await mint(repository)).id)

    first = await repository.call(REGISTRATION_TOKENS_REVOKE, asked)
    second = await repository.call(REGISTRATION_TOKENS_REVOKE, asked)

    assert first == second
    assert first.state is RegistrationTokenState.REVOKED
    assert audited(fleet) == ["registration_token.mint", "token.revoked"]


async def test_a_used_token_cannot_be_revoked(repository: Repository) -> None:
    minted = await mint(repository)
    await register(repository, minted.secret)

    with pytest.raises(Conflict) as refused:
        await repository.call(REGISTRATION_TOKENS_REVOKE, RegistrationTokenAsked(token_id=minted.id))

    assert refused.value.details["reason"] == "used"


async def test_another_teams_token_is_missing(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    minted = await mint(await open_repository())
    other = await open_repository("admin@other.example", "other")

    answers = []
    for token_id in (minted.id, RegistrationTokenId.new()):
        with pytest.raises(NotFound) as refused:
            await other.call(REGISTRATION_TOKENS_REVOKE, RegistrationTokenAsked(token_id=token_id))
        answers.append(refused.value.message.replace(str(token_id), "X"))

    assert answers[0] == answers[1]
    assert (await other.call(REGISTRATION_TOKENS_LIST, RegistrationTokenQuery())).items == ()


async def test_only_an_administrator_mints(open_repository: OpenRepository) -> None:
    operator = await open_repository(OPERATOR)

    with pytest.raises(Forbidden):
        await mint(operator)


@pytest.mark.rule("R000-1", "R000-21", "R000-22", "R000-52", "R000-57", "R000-123", "R000-124", "R000-125")
async def test_an_agent_comes_in_whole(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)

    came = await register(
        repository,
        minted.secret,
        hostname="nas-02",
        os_info="Debian 13",
        version="1.2.3",
        binary_checksum="AB" * 32,
        capabilities=["tool:report:2.1.0", " gpu ", "gpu"],
        profile={"region": "eu"},
    )

    agent = await repository.call(AGENTS_GET, AgentAsked(agent_id=came.agent.id))
    assert agent == came.agent
    assert agent.status is Presence.OFFLINE
    assert (agent.hostname, agent.os_info, agent.version) == ("nas-02", "Debian 13", "1.2.3")
    assert (agent.binary_checksum, agent.profile) == ("ab" * 32, {"region": "eu"})
    assert agent.capabilities == ("gpu", "tool:report:2.1.0")
    assert (agent.worker_id, agent.connector_ref) == ("kestrel", "pull")
    assert agent.owner_user_id == agent.created_by_user_id == fleet.user_id(ADMIN)
    key = Secret.parse(came.secret)
    assert key.owner == agent.id
    assert agent.api_key_prefix == key.shown_prefix
    assert fleet.execute("select kind, full_name, role from users where id = %s", agent.system_user_id) == [
        ("system", "Agent: kestrel", None)
    ]
    assert fleet.one("select api_key_hash from agents where id = %s", agent.id) == key.hash
    assert fleet.one("select used_by_agent_id from registration_tokens") == agent.id


@pytest.mark.rule("R000-128")
async def test_registering_is_the_act_of_whoever_minted_the_token(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)

    came = await register(repository, minted.secret)

    rows = fleet.execute(
        "select actor_type, actor_user_id, actor_label, resource_id, metadata->>'registration_token_id',"
        " strpos(audit_log::text, %s) from audit_log where action = 'agent.register'",
        came.secret[-40:],
    )
    assert rows == [("human", fleet.user_id(ADMIN), "Ana Costa", str(came.agent.id), str(minted.id), 0)]


@pytest.mark.rule("R000-63", "R000-62")
async def test_of_two_racing_registrations_one_wins(repository: Repository, fleet: Fleet) -> None:
    token = (await mint(repository)).secret

    outcomes = await asyncio.gather(
        register(repository, token, "kestrel", nonce=NONCE),
        register(repository, token, "merlin", nonce=OTHER_NONCE),
        return_exceptions=True,
    )

    lost = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert len(lost) == 1
    assert lost[0].details["reason"] == "used"
    assert fleet.one("select count(*) from agents where name in ('kestrel', 'merlin')") == 1
    assert fleet.one("select count(*) from users where full_name in ('Agent: kestrel', 'Agent: merlin')") == 1


async def refusal(repository: Repository, token: str, nonce: str = OTHER_NONCE) -> ConsoleError:
    with pytest.raises((Conflict, Unauthorized)) as refused:
        await register(repository, token, "second", nonce=nonce)
    return refused.value


@pytest.mark.rule("R000-63", "R000-64")
async def test_a_genuine_token_that_is_over_says_why(repository: Repository, fleet: Fleet) -> None:
    used, revoked, expired = [await mint(repository) for _ in range(3)]
    await register(repository, used.secret)
    await repository.call(REGISTRATION_TOKENS_REVOKE, RegistrationTokenAsked(token_id=revoked.id))
    fleet.execute(
        "update registration_tokens set created_at = now() - interval '1 day', expires_at = now() where id = %s",
        expired.id,
    )
    written = len(audited(fleet))

    reasons = [(await refusal(repository, token.secret)).details["reason"] for token in (used, revoked, expired)]

    assert reasons == ["used", "revoked", "expired"]
    assert fleet.one("select count(*) from agents where name = 'second'") == 0
    assert len(audited(fleet)) == written


async def test_a_token_ends_with_the_rights_of_its_maker(open_repository: OpenRepository, fleet: Fleet) -> None:
    token = (await mint(await open_repository())).secret
    fleet.execute("update users set role = 'admin' where email = %s", OPERATOR)
    fleet.execute("update users set role = 'viewer' where email = %s", ADMIN)

    refused = await refusal(await open_repository(OPERATOR), token)

    assert refused.details["reason"] == "revoked"


@pytest.mark.rule("R000-64", "U001-1")
async def test_unknown_and_wrong_tokens_answer_alike(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)
    unknown = Secret.mint(fleet.team_id(), RegistrationTokenId.new()).word
    wrong = Secret.mint(fleet.team_id(), minted.id).word
    key_of_an_agent = Secret.mint(fleet.team_id(), fleet.agent_id("atlas")).word

    answers = [(await refusal(repository, word)).body() for word in (unknown, wrong, key_of_an_agent)]
    mistyped = await refusal(repository, minted.secret[:-1])

    assert answers[0]["code"] == "unauthorized"
    assert all(answer == answers[0] for answer in answers)
    assert "mistyped" in mistyped.message


@pytest.mark.parametrize(
    ("wanted", "field"),
    [({"name": "ATLAS"}, "name"), ({"name": "fresh", "worker_id": "atlas"}, "worker_id")],
)
async def test_a_taken_name_consumes_nothing(
    repository: Repository, fleet: Fleet, wanted: dict[str, str], field: str
) -> None:
    token = (await mint(repository)).secret
    people = fleet.one("select count(*) from users")

    with pytest.raises(Conflict) as refused:
        await register(repository, token, **wanted)

    assert refused.value.details["field"] == field
    assert fleet.one("select count(*) from users") == people
    assert (await register(repository, token, "free")).agent.name == "free"


async def test_a_lost_answer_can_be_asked_for_again(repository: Repository, fleet: Fleet) -> None:
    token = (await mint(repository)).secret
    lost = await register(repository, token)

    found = await register(repository, token)

    assert found.agent.id == lost.agent.id
    assert found.secret != lost.secret
    assert fleet.execute("select api_key_hash, previous_key_hash from agents where id = %s", lost.agent.id) == [
        (Secret.parse(found.secret).hash, None)
    ]
    assert audited(fleet).count("agent.register") == 2


@pytest.mark.parametrize(
    ("nonce", "since"),
    [
        (OTHER_NONCE, "update registration_tokens set client_nonce_hash = client_nonce_hash"),
        (NONCE, "update registration_tokens set used_at = now() - interval '10 minutes'"),
        (NONCE, "update agents set revoked_at = now(), revocation_reason = 'x' where name = 'kestrel'"),
        (NONCE, "update agents set deleted_at = now() where name = 'kestrel'"),
    ],
    ids=["another nonce", "too late", "agent revoked", "agent deleted"],
)
async def test_only_the_same_client_may_ask_again_and_only_soon(
    repository: Repository, fleet: Fleet, nonce: str, since: str
) -> None:
    token = (await mint(repository)).secret
    kept = await register(repository, token)
    fleet.execute(since)

    refused = await refusal(repository, token, nonce)

    assert refused.details["reason"] == "used"
    key = fleet.one("select api_key_hash from agents where id = %s", kept.agent.id)
    assert key == Secret.parse(kept.secret).hash


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "\u202egnp.exe", "[@click=app.quit]x[/]", "a" * 255])
async def test_a_strange_name_is_stored_as_given(repository: Repository, fleet: Fleet, name: str) -> None:
    token = (await mint(repository)).secret

    came = await register(repository, token, name)

    assert came.agent.name == name
    assert fleet.one("select name from agents where id = %s", came.agent.id) == name


@pytest.mark.parametrize(
    "facts",
    [
        {"name": " "},
        {"name": "x" * 256},
        {"nonce": "short"},
        {"nonce": "x" * 129},
        {"version": "x" * 51},
        {"binary_checksum": "xyz"},
        {"capabilities": [""]},
        {"connector_ref": "postgres://bot:hunter2@db/x"},
        {"connector_ref": "api_key=hunter2hunter2"},
        {"unknown": 1},
    ],
)
def test_bad_facts_are_refused_without_repeating_them(facts: dict[str, object]) -> None:
    token = "art_key_MARKER"

    with pytest.raises(ValidationError) as refused:
        AgentRegistration.model_validate({"token": token, "name": "x", "nonce": NONCE} | facts)

    assert [error["loc"][0] for error in refused.value.errors()] == list(facts)
    assert "hunter2" not in str(refused.value)
    assert "MARKER" not in str(refused.value)


async def test_an_administrator_gives_an_agent_a_new_key(repository: Repository, fleet: Fleet) -> None:
    came = await register(repository, (await mint(repository)).secret)

    minted = await repository.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=came.agent.id, overlap_seconds=60))

    (row,) = fleet.execute(
        "select api_key_hash, previous_key_hash, previous_key_ends_at - updated_at from agents where id = %s",
        came.agent.id,
    )
    assert row == (Secret.parse(minted.secret).hash, Secret.parse(came.secret).hash, timedelta(seconds=60))
    assert minted.agent.api_key_prefix == Secret.parse(minted.secret).shown_prefix
    assert audited(fleet)[-1] == "agent.rotate_key"


async def test_no_new_key_for_a_revoked_agent_or_by_an_operator(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    key = fleet.one("select api_key_hash from agents where name = 'atlas'")

    with pytest.raises(Conflict):
        await admin.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=fleet.agent_id("juniper")))
    with pytest.raises(Forbidden):
        await operator.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=fleet.agent_id("atlas")))

    assert fleet.one("select api_key_hash from agents where name = 'atlas'") == key
    assert audited(fleet) == []

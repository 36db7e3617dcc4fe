"""Worker tokens and operator tokens, through both repositories."""

import asyncio
from datetime import timedelta

import psycopg
import pytest
from pydantic import ValidationError

from agent_console.domain.agent_changes import AgentImport
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.ids import AgentId, Id, UserId
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import (
    MintedOperatorToken,
    MintedWorkerToken,
    NewOperatorToken,
    NewWorkerToken,
    OperatorTokenAsked,
    OperatorTokenQuery,
    OperatorTokenRotation,
    TokenState,
    WorkerTokenAsked,
    WorkerTokenQuery,
    WorkerTokenRotation,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.agents import AGENTS_IMPORT
from agent_console.repository.operations.credentials import (
    OPERATOR_TOKENS_LIST,
    OPERATOR_TOKENS_MINT,
    OPERATOR_TOKENS_REVOKE,
    OPERATOR_TOKENS_ROTATE,
    WORKER_TOKENS_LIST,
    WORKER_TOKENS_MINT,
    WORKER_TOKENS_REVOKE,
    WORKER_TOKENS_ROTATE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.repository.test_contract_registration import mint as mint_registration
from tests.repository.test_contract_registration import register
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def mint(repository: Repository, worker_id: str = "atlas", **policy: object) -> MintedWorkerToken:
    wanted = NewWorkerToken.model_validate({"worker_id": worker_id, **policy})
    return await repository.call(WORKER_TOKENS_MINT, wanted)


async def mint_for(repository: Repository, user_id: UserId, **wanted: object) -> MintedOperatorToken:
    new = NewOperatorToken.model_validate({"user_id": user_id, **wanted})
    return await repository.call(OPERATOR_TOKENS_MINT, new)


def audited(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.execute("select action, resource_type from audit_log order by seq")


@pytest.mark.rule("R001-1", "R001-4", "R001-5", "R001-6", "R001-7", "R001-8", "R001-9", "R001-10")
async def test_a_worker_token_without_a_policy_allows_any(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)

    (listed,) = (await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery())).items
    assert listed.model_dump() == minted.model_dump(exclude={"secret"})
    assert str(listed.id).startswith("wkt_")
    assert (listed.worker_id, listed.is_active, listed.state) == ("atlas", True, TokenState.ACTIVE)
    assert (listed.allowed_repositories, listed.allowed_job_types, listed.capabilities) == (None, None, None)
    assert (listed.description, listed.expires_at, listed.created_by) == (None, None, "Ana Costa")
    assert listed.created_at == listed.updated_at
    assert audited(fleet) == [("worker_token.mint", "worker_token")]


@pytest.mark.rule("R001-3", "U001-2")
async def test_a_worker_secret_is_shown_once_and_kept_nowhere(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository, description="night shift")

    listed = await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery())

    tail = minted.secret[-40:]
    assert tail not in listed.model_dump_json()
    assert tail not in repr(minted)
    assert fleet.one("select token_hash from worker_tokens") == Secret.parse(minted.secret).hash
    for table in ("worker_tokens", "audit_log"):
        assert fleet.one(f"select count(*) from {table} t where t::text like %s", f"%{tail}%") == 0, table


@pytest.mark.rule("R001-11", "R001-5", "R001-6", "R001-7")
async def test_a_policy_is_kept_trimmed_and_distinct_and_none_is_not_any(repository: Repository) -> None:
    minted = await mint(
        repository,
        allowed_repositories=[" org/b ", "org/a", "org/b"],
        allowed_job_types=[],
        capabilities=[" git "],
    )

    assert minted.allowed_repositories == ("org/a", "org/b")
    assert minted.allowed_job_types == ()
    assert minted.capabilities == ("git",)


@pytest.mark.rule("R001-2", "R001-11")
@pytest.mark.parametrize(
    ("refused", "field"),
    [
        ({"worker_id": ""}, "worker_id"),
        ({"worker_id": "x" * 256}, "worker_id"),
        ({"description": "x" * 501}, "description"),
        ({"allowed_repositories": [""]}, "allowed_repositories"),
        ({"allowed_repositories": ["x" * 501]}, "allowed_repositories"),
        ({"allowed_job_types": ["  "]}, "allowed_job_types"),
        ({"capabilities": ["git", ""]}, "capabilities"),
        ({"capabilities": ["x"] * 201}, "capabilities"),
    ],
)
def test_a_policy_outside_its_bounds_is_refused(refused: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError) as error:
        NewWorkerToken.model_validate({"worker_id": "atlas"} | refused)

    assert [item["loc"][0] for item in error.value.errors()] == [field]


async def test_a_worker_token_needs_a_living_agent(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now() where name = 'beacon'")

    for worker_id in ("nobody", "beacon"):
        with pytest.raises(NotFound):
            await mint(repository, worker_id)
    with pytest.raises(Conflict):
        await mint(repository, "juniper")

    assert fleet.one("select count(*) from worker_tokens") == 0


async def test_worker_tokens_are_listed_newest_first_in_pages(repository: Repository) -> None:
    made = [(await mint(repository, worker_id)).id for worker_id in ("atlas", "ember", "atlas")]

    first = await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery(limit=2))
    rest = await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery(limit=2, after=first.next))
    of_atlas = await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery(worker_id="atlas"))

    assert [token.id for token in (*first.items, *rest.items)] == made[::-1]
    assert [token.id for token in of_atlas.items] == [made[2], made[0]]


@pytest.mark.rule("R001-9", "U002-5")
async def test_revoking_a_worker_token_twice_is_one_change(repository: Repository, fleet: Fleet) -> None:
    minted = await mint(repository)

    revoked = [await repository.call(WORKER_TOKENS_REVOKE, WorkerTokenAsked(token_id=minted.id)) for _ in range(2)]

    assert revoked[0] == revoked[1]
    assert (revoked[0].state, revoked[0].is_active) == (TokenState.REVOKED, False)
    assert revoked[0].updated_at > minted.updated_at
    assert audited(fleet)[1:] == [("token.revoked", "worker_token")]


async def test_a_rotated_worker_token_keeps_its_policy(repository: Repository, fleet: Fleet) -> None:
    old = await mint(repository, description="night", allowed_job_types=["report"], capabilities=[])

    new = await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id, overlap_seconds=60))

    kept = {"worker_id", "description", "allowed_repositories", "allowed_job_types", "capabilities"}
    assert new.model_dump(include=kept) == old.model_dump(include=kept)
    assert (new.id != old.id, new.secret != old.secret, new.expires_at) == (True, True, None)
    (_, before) = (await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery())).items
    assert (before.id, before.state) == (old.id, TokenState.ACTIVE)
    assert before.expires_at is not None
    assert before.expires_at - before.updated_at == timedelta(seconds=60)
    assert audited(fleet)[1:] == [("worker_token.rotate", "worker_token")]


async def test_rotating_without_an_overlap_ends_the_old_token(repository: Repository) -> None:
    old = await mint(repository)

    await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id))

    (_, before) = (await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery())).items
    assert before.state is TokenState.REVOKED
    with pytest.raises(Conflict):
        await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id))


async def test_of_two_racing_rotations_one_wins(repository: Repository, fleet: Fleet) -> None:
    asked = WorkerTokenRotation(token_id=(await mint(repository)).id)
    with psycopg.connect(fleet.administration) as holder:
        holder.execute("select from worker_tokens for update")
        racing = [asyncio.ensure_future(repository.call(WORKER_TOKENS_ROTATE, asked)) for _ in range(2)]
        for _ in range(500):
            if fleet.one(WAITING) == len(racing):
                break
            await asyncio.sleep(0.01)

    outcomes = await asyncio.gather(*racing, return_exceptions=True)

    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1
    assert fleet.one("select count(*) from worker_tokens where is_active") == 1


async def test_a_second_rotation_does_not_lengthen_the_overlap(repository: Repository, fleet: Fleet) -> None:
    old = await mint(repository)
    await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id, overlap_seconds=60))
    ends = fleet.one("select expires_at from worker_tokens where id = %s", old.id)

    await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id, overlap_seconds=3600))

    assert fleet.one("select expires_at from worker_tokens where id = %s", old.id) == ends


async def test_a_later_agent_does_not_inherit_worker_tokens(repository: Repository, fleet: Fleet) -> None:
    await mint(repository, "beacon")
    fleet.execute("update agents set deleted_at = now() where name = 'beacon'")

    await register(repository, (await mint_registration(repository)).secret, "beacon")

    (token,) = (await repository.call(WORKER_TOKENS_LIST, WorkerTokenQuery())).items
    assert token.state is TokenState.REVOKED


async def test_an_imported_agent_neither_leaves_nor_inherits_worker_tokens(
    repository: Repository, fleet: Fleet
) -> None:
    def states() -> list[tuple[object, ...]]:
        return fleet.execute("select worker_id, is_active from worker_tokens order by id")

    async def put(agent_id: AgentId, name: str, worker_id: str | None) -> None:
        await repository.call(AGENTS_IMPORT, AgentImport(agent_id=agent_id, name=name, worker_id=worker_id))

    beacon = fleet.agent_id("beacon")
    await mint(repository, "beacon")
    await put(beacon, "beacon", "beacon")
    kept = states()
    await put(beacon, "beacon", None)
    left = states()
    fleet.execute("update worker_tokens set is_active = true")
    await put(AgentId.new(), "nimbus", "beacon")
    inherited = states()
    fleet.execute("update worker_tokens set is_active = true, worker_id = 'beacon-2'")
    await put(beacon, "beacon", "beacon-2")

    assert (kept, left, inherited) == ([("beacon", True)], [("beacon", False)], [("beacon", False)])
    assert states() == [("beacon-2", False)]


async def test_a_rotation_waits_for_whoever_deletes_the_agent(repository: Repository, fleet: Fleet) -> None:
    old = await mint(repository, "beacon")
    with psycopg.connect(fleet.administration) as deleting:
        deleting.execute("select from agents where name = 'beacon' for update")
        asked = WorkerTokenRotation(token_id=old.id, overlap_seconds=60)
        rotating = asyncio.ensure_future(repository.call(WORKER_TOKENS_ROTATE, asked))
        await somebody_waits_for_a_lock(fleet, task=rotating)
        deleting.execute("update worker_tokens set is_active = false where worker_id = 'beacon'")
        deleting.execute("update agents set deleted_at = now() where name = 'beacon'")

    with pytest.raises(Conflict, match="revoked"):
        await rotating
    assert fleet.one("select count(*) from worker_tokens where is_active") == 0


async def test_a_token_of_a_revoked_agent_is_not_rotated(repository: Repository, fleet: Fleet) -> None:
    old = await mint(repository, "beacon")
    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'lost' where name = 'beacon'")

    with pytest.raises(Conflict, match="open nothing"):
        await repository.call(WORKER_TOKENS_ROTATE, WorkerTokenRotation(token_id=old.id))


async def test_an_operator_token_lasts_ninety_days(repository: Repository, fleet: Fleet) -> None:
    minted = await mint_for(repository, fleet.user_id(VIEWER), name="laptop")

    tokens = (await repository.call(OPERATOR_TOKENS_LIST, OperatorTokenQuery(user_id=minted.user_id))).items

    assert [token.model_dump() for token in tokens] == [minted.model_dump(exclude={"secret"})]
    assert (minted.user, minted.created_by, minted.name) == ("Vera Lind", "Ana Costa", "laptop")
    assert minted.expires_at is not None
    assert minted.expires_at - minted.created_at == timedelta(days=90)
    assert audited(fleet) == [("operator_token.mint", "operator_token")]
    tail = minted.secret[-40:]
    assert fleet.one("select count(*) from operator_tokens t where t::text like %s", f"%{tail}%") == 0


@pytest.mark.parametrize("refused", [{"days": 0}, {"days": 3651}, {"name": "x" * 101}])
def test_an_operator_token_outside_its_bounds_is_refused(refused: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NewOperatorToken.model_validate({"user_id": UserId.new()} | refused)


async def test_everyone_deals_with_their_own_tokens_only(open_repository: OpenRepository, fleet: Fleet) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)
    admins = await mint_for(admin, fleet.user_id(ADMIN))

    own = await mint_for(viewer, fleet.user_id(VIEWER))

    with pytest.raises(Forbidden):
        await mint_for(viewer, fleet.user_id(ADMIN))
    with pytest.raises(NotFound):
        await viewer.call(OPERATOR_TOKENS_REVOKE, OperatorTokenAsked(token_id=admins.id))
    with pytest.raises(NotFound):
        await viewer.call(OPERATOR_TOKENS_ROTATE, OperatorTokenRotation(token_id=admins.id))
    seen = (await viewer.call(OPERATOR_TOKENS_LIST, OperatorTokenQuery())).items
    assert own.id in {token.id for token in seen}
    assert {token.user_id for token in seen} == {fleet.user_id(VIEWER)}
    foreign = OperatorTokenQuery(user_id=fleet.user_id(ADMIN))
    assert (await viewer.call(OPERATOR_TOKENS_LIST, foreign)).items == ()
    ended = await viewer.call(OPERATOR_TOKENS_REVOKE, OperatorTokenAsked(token_id=own.id))
    assert ended.state is TokenState.REVOKED


@pytest.mark.rule("R000-131")
async def test_nobody_signs_in_as_an_agent_or_as_someone_deactivated(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update users set is_active = false where email = %s", OPERATOR)
    system_user = fleet.one("select system_user_id from agents where name = 'atlas'")
    assert hasattr(system_user, "int")

    for user_id in (UserId(int=system_user.int), fleet.user_id(OPERATOR)):
        with pytest.raises(Conflict):
            await mint_for(repository, user_id)
    with pytest.raises(NotFound):
        await mint_for(repository, UserId.new())

    assert audited(fleet) == []


@pytest.mark.rule("U002-5")
async def test_revoking_an_operator_token_twice_is_one_change(repository: Repository, fleet: Fleet) -> None:
    minted = await mint_for(repository, fleet.user_id(VIEWER))

    revoked = [
        await repository.call(OPERATOR_TOKENS_REVOKE, OperatorTokenAsked(token_id=minted.id)) for _ in range(2)
    ]

    assert revoked[0] == revoked[1]
    assert revoked[0].state is TokenState.REVOKED
    assert audited(fleet)[1:] == [("token.revoked", "operator_token")]


async def test_an_overlap_never_lengthens_a_life(repository: Repository, fleet: Fleet) -> None:
    old = await mint_for(repository, fleet.user_id(VIEWER))
    ends = fleet.one(
        "update operator_tokens set expires_at = now() + interval '10 minutes' where id = %s returning expires_at",
        old.id,
    )

    new = await repository.call(
        OPERATOR_TOKENS_ROTATE, OperatorTokenRotation(token_id=old.id, overlap_seconds=3600, days=7)
    )

    assert new.expires_at is not None
    assert new.expires_at - new.created_at == timedelta(days=7)
    assert fleet.one("select expires_at from operator_tokens where id = %s", old.id) == ends
    assert audited(fleet)[1:] == [("operator_token.rotate", "operator_token")]


@pytest.mark.parametrize(
    "operation",
    [WORKER_TOKENS_REVOKE, WORKER_TOKENS_ROTATE, OPERATOR_TOKENS_REVOKE, OPERATOR_TOKENS_ROTATE],
    ids=lambda operation: str(operation.name),
)
async def test_another_teams_token_is_missing(
    open_repository: OpenRepository, fleet: Fleet, operation: AnyOperation
) -> None:
    fleet.add_team("other")
    admin, other = await open_repository(), await open_repository("admin@other.example", "other")
    foreign: Id = (await mint(admin)).id
    if operation.noun == "operator_tokens":
        foreign = (await mint_for(admin, fleet.user_id(VIEWER))).id

    answers = []
    for token_id in (foreign, type(foreign).new()):
        with pytest.raises(NotFound) as refused:
            await other.call(operation, operation.request(token_id=token_id))
        answers.append(refused.value.message.replace(str(token_id), "X"))

    assert answers[0] == answers[1]


async def test_another_teams_people_and_lists_are_missing(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    admin, other = await open_repository(), await open_repository("admin@other.example", "other")
    await mint(admin)
    await mint_for(admin, fleet.user_id(VIEWER))

    with pytest.raises(NotFound):
        await mint_for(other, fleet.user_id(VIEWER))
    with pytest.raises(NotFound):
        await mint(other, "atlas")

    assert (await other.call(WORKER_TOKENS_LIST, WorkerTokenQuery())).items == ()
    seen = (await other.call(OPERATOR_TOKENS_LIST, OperatorTokenQuery())).items
    assert {token.user for token in seen} <= {"Admin of other"}

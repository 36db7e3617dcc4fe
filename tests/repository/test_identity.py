"""Who is calling: named in a profile, or proved by a token."""

import pytest

from agent_console.domain.errors import ConfigError, ConsoleError, Forbidden, Unauthorized
from agent_console.domain.ids import OperatorTokenId
from agent_console.domain.jobs import NewJob
from agent_console.domain.permissions import Role
from agent_console.domain.records import Nothing
from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE, ME
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.mark.rule("R000-6")
async def test_the_caller_is_told_who_it_is(repository: Repository) -> None:
    me = await repository.call(ME, Nothing())

    assert (me.team, me.name, me.role) == ("example", "Ana Costa", Role.ADMIN)
    assert str(me.user_id).startswith("usr_")
    assert me.database_version.startswith("PostgreSQL 18")


async def test_a_right_that_is_taken_away_ends_at_once(open_repository: OpenRepository, fleet: Fleet) -> None:
    operator = await open_repository(OPERATOR)
    await operator.call(JOBS_CREATE, NewJob(type="x", payload={}))

    fleet.execute("update users set role = 'viewer' where email = %s", OPERATOR)
    with pytest.raises(Forbidden):
        await operator.call(JOBS_CREATE, NewJob(type="x", payload={}))

    fleet.execute("update users set is_active = false where email = %s", OPERATOR)
    with pytest.raises(Unauthorized):
        await operator.call(ME, Nothing())


async def test_a_direct_session_without_a_name_is_the_only_administrator(fleet: Fleet) -> None:
    async with open_direct(fleet.working) as repository:
        assert (await repository.call(ME, Nothing())).name == "Ana Costa"


@pytest.mark.parametrize(
    ("team", "user", "hint"),
    [
        ("nowhere", None, "Check `team`"),
        ("example", "nobody@example.com", "Check `user`"),
        (None, None, "one of: example, other"),
        ("other", None, "e-mail address or usr_ id"),
    ],
)
async def test_a_profile_that_names_nobody_is_told_what_to_set(
    fleet: Fleet, team: str | None, user: str | None, hint: str
) -> None:
    fleet.add_team("other")
    fleet.execute("update users set role = 'viewer' where email = 'admin@other.example'")

    async with open_direct(fleet.working, team=team, user=user) as repository:
        with pytest.raises(ConfigError) as refused:
            await repository.call(ME, Nothing())

    assert hint in refused.value.hint


@pytest.mark.rule("R000-131")
async def test_a_system_user_cannot_act_as_a_person(fleet: Fleet) -> None:
    system_user = fleet.one("select id from users where kind = 'system' limit 1")
    assert hasattr(system_user, "int")
    from agent_console.domain.ids import UserId

    async with open_direct(fleet.working, team="example", user=str(UserId(int=system_user.int))) as repository:
        with pytest.raises(ConfigError):
            await repository.call(ME, Nothing())


async def refusal(url: str, token: str) -> ConsoleError:
    async with HttpRepository(url, token) as repository:
        with pytest.raises(Unauthorized) as refused:
            await repository.call(ME, Nothing())
        return refused.value


@pytest.mark.rule("R001-25", "U001-1", "U004-20")
async def test_unknown_wrong_revoked_and_expired_tokens_answer_alike(fleet: Fleet) -> None:
    good = Secret.parse(fleet.token("ana@example.com"))
    unknown = Secret.mint(fleet.team_id(), OperatorTokenId.new())
    wrong = Secret.mint(good.team_id, good.owner)
    revoked, expired = fleet.token("ole@example.com"), fleet.token("vera@example.com")
    fleet.execute("update operator_tokens set revoked_at = now() where id = %s", Secret.parse(revoked).owner)
    fleet.execute(
        "update operator_tokens set expires_at = now() - interval '1 second' where id = %s",
        Secret.parse(expired).owner,
    )

    async with serving(fleet.working) as url:
        answers = [(await refusal(url, word)).body() for word in (unknown.word, wrong.word, revoked, expired)]
        mistyped = await refusal(url, good.word[:-1] + ("0" if good.word[-1] != "0" else "1"))

    assert all(answer == answers[0] for answer in answers)
    assert "mistyped" in mistyped.message


async def test_a_token_is_stored_only_as_its_hash(fleet: Fleet) -> None:
    word = fleet.token("ana@example.com")

    assert fleet.one("select count(*) from operator_tokens t where t::text like %s", f"%{word[-40:]}%") == 0
    assert fleet.one("select token_prefix from operator_tokens") == Secret.parse(word).shown_prefix

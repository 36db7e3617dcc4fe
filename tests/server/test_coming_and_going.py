"""A person comes in with a token, goes on with another, and leaves: each is an act of the trail."""

import pytest

from agent_console.domain.errors import NotFound, Unauthorized
from agent_console.domain.ids import UserId
from agent_console.domain.jobs import JobQuery
from agent_console.domain.kinds import HumanRole
from agent_console.domain.records import Nothing
from agent_console.domain.tokens import NewOperatorToken, OperatorTokenAsked, OperatorTokenRotation
from agent_console.domain.users import UserRole
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_LIST, ME
from agent_console.repository.operations.credentials import (
    OPERATOR_TOKENS_MINT,
    OPERATOR_TOKENS_REVOKE,
    OPERATOR_TOKENS_ROTATE,
)
from agent_console.repository.operations.people import USERS_SET_ROLE
from tests.support.fleet import Fleet
from tests.support.serving import serving

VIEWER = "vera@example.com"
ADMIN = "ana@example.com"


def told(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.execute(
        "select action, actor_label, resource_type from audit_log where action ~ '^(auth|session)' order by seq"
    )


@pytest.mark.rule("U002-5")
async def test_coming_in_going_on_and_leaving_are_written_down_once_each(fleet: Fleet) -> None:
    async with serving(fleet.working) as url:
        async with HttpRepository(url, fleet.token(ADMIN)) as admin:
            first = await admin.call(OPERATOR_TOKENS_MINT, NewOperatorToken(user_id=fleet.user_id(VIEWER)))
        async with HttpRepository(url, first.secret) as vera:
            for _ in range(3):
                me = await vera.call(ME, Nothing())
            second = await vera.call(OPERATOR_TOKENS_ROTATE, OperatorTokenRotation(token_id=first.id))
        async with HttpRepository(url, second.secret) as vera:
            await vera.call(OPERATOR_TOKENS_REVOKE, OperatorTokenAsked(token_id=second.id))
            with pytest.raises(Unauthorized):
                await vera.call(ME, Nothing())

    assert me.token_id == first.id
    assert [action for action, *_ in told(fleet)][:4] == [
        "auth.login.success",
        "session.refresh",
        "auth.login.success",
        "auth.logout",
    ]
    assert {row[1:] for row in told(fleet)[:4]} == {("Vera Lind", "operator_token")}


@pytest.mark.rule("U002-5")
async def test_a_token_that_rested_for_half_a_day_comes_in_again(fleet: Fleet) -> None:
    async with serving(fleet.working) as url, HttpRepository(url, fleet.token(VIEWER)) as vera:
        await vera.call(ME, Nothing())
        fleet.execute("update operator_tokens set last_used_at = now() - interval '11 hours'")
        await vera.call(ME, Nothing())
        assert fleet.one("select last_used_at > now() - interval '1 minute' from operator_tokens") is True
        assert told(fleet) == [], "a short rest is no coming in"
        fleet.execute("update operator_tokens set last_used_at = now() - interval '13 hours'")

        await vera.call(ME, Nothing())

    assert told(fleet) == [("auth.login.success", "Vera Lind", "operator_token")]


@pytest.mark.rule("U002-5", "R002-88")
@pytest.mark.parametrize("asks_for", ["a page", "an answer", "a change", "what is refused"])
async def test_whoever_comes_in_is_told_with_the_place_whatever_becomes_of_it(fleet: Fleet, asks_for: str) -> None:
    wanted = UserRole(user_id=fleet.user_id(VIEWER), role=HumanRole.OPERATOR)
    async with serving(fleet.working) as url, HttpRepository(url, fleet.token(ADMIN)) as ana:
        fleet.execute("update operator_tokens set last_used_at = null")
        match asks_for:
            case "a page":
                await ana.call(JOBS_LIST, JobQuery())
            case "an answer":
                await ana.call(ME, Nothing())
            case "a change":
                await ana.call(USERS_SET_ROLE, wanted)
            case _:
                with pytest.raises(NotFound):
                    await ana.call(USERS_SET_ROLE, wanted.model_copy(update={"user_id": UserId.new()}))

    places = fleet.execute(
        "select host(ip), user_agent like 'agent-console%%', last_used_at is not null"
        " from audit_log, operator_tokens where action = 'auth.login.success'"
    )
    assert places == [("127.0.0.1", True, True)]

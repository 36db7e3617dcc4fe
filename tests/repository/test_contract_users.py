"""People, their roles and the system users of agents, through both repositories."""

import asyncio

import psycopg
import pytest
from pydantic import ValidationError

from agent_console.domain.errors import Conflict, ConsoleError, NotFound, Unauthorized
from agent_console.domain.ids import SessionId, UserId
from agent_console.domain.kinds import HumanRole, UserKind
from agent_console.domain.records import Nothing
from agent_console.domain.users import KnownPerson, NewUser, User, UserAsked, UserDeactivation, UserQuery, UserRole
from agent_console.repository.operations import ME, AnyOperation
from agent_console.repository.operations.people import (
    USERS_ACTIVATE,
    USERS_CREATE,
    USERS_DEACTIVATE,
    USERS_GET,
    USERS_LIST,
    USERS_PUT,
    USERS_SET_ROLE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock

MIA = KnownPerson(subject="oidc|mia", email="mia@example.com", full_name="Mia Holm")


async def users(repository: Repository, query: UserQuery) -> list[User]:
    return list((await repository.call(USERS_LIST, query)).items)


async def get(repository: Repository, user_id: UserId) -> User:
    return await repository.call(USERS_GET, UserAsked(user_id=user_id))


async def set_role(repository: Repository, user_id: UserId, role: HumanRole) -> User:
    return await repository.call(USERS_SET_ROLE, UserRole(user_id=user_id, role=role))


async def deactivate(repository: Repository, user_id: UserId) -> User:
    return await repository.call(USERS_DEACTIVATE, UserDeactivation(user_id=user_id, reason="laptop was stolen"))


def audited(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.execute("select action, metadata from audit_log where action not like 'auth.%%' order by seq")


@pytest.mark.rule("R000-6", "R004-55")
async def test_people_and_system_users_are_listed_in_pages(open_repository: OpenRepository) -> None:
    viewer = await open_repository(VIEWER)

    everyone: list[User] = []
    after: str | None = None
    while True:
        page = await viewer.call(USERS_LIST, UserQuery(limit=5, after=after))
        everyone += page.items
        after = page.next
        if after is None:
            break

    assert len(everyone) == len({user.id for user in everyone}) == 13
    assert all(str(user.id).startswith("usr_") for user in everyone)
    people = await users(viewer, UserQuery(kind=UserKind.HUMAN))
    assert {user.full_name for user in people} == {"Ana Costa", "Ole Berg", "Vera Lind"}
    system = await users(viewer, UserQuery(kind=UserKind.SYSTEM))
    assert {user.role for user in system} == {None}
    assert [user.email for user in await users(viewer, UserQuery(role=HumanRole.OPERATOR))] == [OPERATOR]
    assert await users(viewer, UserQuery(kind=UserKind.SYSTEM, role=HumanRole.ADMIN)) == []
    assert await get(viewer, people[0].id) == people[0]


@pytest.mark.rule("R004-38", "R004-39", "R004-40", "U000-49")
async def test_a_new_person_is_kept_as_given(repository: Repository, fleet: Fleet) -> None:
    new = NewUser(email="Mia@Example.com", full_name="Mia Holm", role=HumanRole.OPERATOR, subject="oidc|mia")

    made = await repository.call(USERS_CREATE, new)

    assert made == await get(repository, made.id)
    assert made.model_dump(include=set(NewUser.model_fields)) == new.model_dump()
    assert (made.kind, made.is_active, made.last_seen_at) == (UserKind.HUMAN, True, None)
    assert (made.created_by, made.updated_by) == ("Ana Costa", "Ana Costa")
    assert fleet.one(
        "select abs(extract(epoch from created_at - %s)) < 0.001 from users where id = %s",
        *(made.created_at, made.id),
    )
    assert audited(fleet) == [("user.create", {"role": "operator"})]


async def test_an_address_and_a_subject_belong_to_one_person(repository: Repository, fleet: Fleet) -> None:
    await repository.call(USERS_PUT, MIA)

    for same in ({"email": "ANA@example.com"}, {"subject": "oidc|mia"}):
        wanted = {"email": "new@example.com", "full_name": "New", "role": "viewer", **same}
        with pytest.raises(Conflict):
            await repository.call(USERS_CREATE, NewUser.model_validate(wanted))

    assert len(audited(fleet)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        *({"email": "nobody"}, {"email": "a b@example.com"}, {"email": "@example.com"}, {"email": "a" * 321}),
        *({"full_name": " "}, {"full_name": "x" * 301}, {"role": "agent"}, {"subject": ""}, {"is_active": False}),
    ],
)
def test_a_person_outside_the_bounds_is_refused(wrong: dict[str, object]) -> None:
    wanted = {"email": "mia@example.com", "full_name": "Mia", "role": "viewer", **wrong}

    with pytest.raises(ValidationError):
        NewUser.model_validate(wanted)


@pytest.mark.rule("R002-2", "R004-13", "R004-54")
async def test_a_login_makes_one_viewer_and_refreshes_the_row(repository: Repository, fleet: Fleet) -> None:
    first = await repository.call(USERS_PUT, MIA)
    same = await repository.call(USERS_PUT, MIA)
    married = MIA.model_copy(update={"email": "mia.berg@example.com", "full_name": "Mia Berg"})
    later = await repository.call(USERS_PUT, married)

    assert (first.role, first.subject, first.email) == (HumanRole.VIEWER, "oidc|mia", "mia@example.com")
    assert same == first
    assert (later.id, later.email, later.full_name) == (first.id, "mia.berg@example.com", "Mia Berg")
    assert audited(fleet) == [
        ("user.put", {"changed": "created", "role": "viewer"}),
        ("user.put", {"changed": "email, full_name", "role": "viewer"}),
    ]


@pytest.mark.rule("R002-2")
async def test_a_first_login_links_whoever_has_the_address(repository: Repository, fleet: Fleet) -> None:
    ole = KnownPerson(subject="oidc|ole", email="OLE@example.com", full_name="Ole Berg")

    linked = await repository.call(USERS_PUT, ole)
    with pytest.raises(Conflict):
        await repository.call(USERS_PUT, ole.model_copy(update={"subject": "oidc|somebody else"}))

    assert (linked.id, linked.role, linked.subject) == (
        fleet.user_id("OLE@example.com"),
        HumanRole.OPERATOR,
        "oidc|ole",
    )
    assert (await get(repository, linked.id)).subject == "oidc|ole"


async def test_a_login_lets_no_blocked_person_in(repository: Repository) -> None:
    mia = await repository.call(USERS_PUT, MIA)
    await deactivate(repository, mia.id)

    again = await repository.call(USERS_PUT, MIA)

    assert not again.is_active


async def test_first_logins_at_the_same_time_are_one_person(repository: Repository, fleet: Fleet) -> None:
    made = await asyncio.gather(*(repository.call(USERS_PUT, MIA) for _ in range(6)))

    assert len({user.id for user in made}) == 1
    assert len(audited(fleet)) == 1


@pytest.mark.rule("U002-6")
async def test_a_raised_role_is_granted_and_a_lowered_one_revoked(repository: Repository, fleet: Fleet) -> None:
    ole = fleet.user_id(OPERATOR)

    raised = await set_role(repository, ole, HumanRole.ADMIN)
    await set_role(repository, ole, HumanRole.ADMIN)
    lowered = await set_role(repository, ole, HumanRole.VIEWER)

    assert (raised.role, lowered.role) == (HumanRole.ADMIN, HumanRole.VIEWER)
    assert audited(fleet) == [
        ("rbac.role.grant", {"old": "operator", "new": "admin"}),
        ("rbac.role.revoke", {"old": "admin", "new": "viewer"}),
    ]


async def test_a_new_role_counts_with_the_next_call(open_repository: OpenRepository, fleet: Fleet) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)

    await set_role(admin, fleet.user_id(VIEWER), HumanRole.ADMIN)
    me = await viewer.call(ME, Nothing())
    ole = await set_role(viewer, fleet.user_id(OPERATOR), HumanRole.VIEWER)

    assert me.role.value == "admin"
    assert ole.updated_by == "Vera Lind"


async def test_the_last_active_administrator_stays(repository: Repository, fleet: Fleet) -> None:
    ana, ole = fleet.user_id(ADMIN), fleet.user_id(OPERATOR)
    await set_role(repository, ole, HumanRole.ADMIN)
    await deactivate(repository, ole)
    before = audited(fleet)

    with pytest.raises(Conflict):
        await set_role(repository, ana, HumanRole.OPERATOR)
    with pytest.raises(Conflict):
        await deactivate(repository, ana)
    await set_role(repository, ole, HumanRole.VIEWER)

    assert (await get(repository, ana)).role is HumanRole.ADMIN
    assert len(audited(fleet)) == len(before) + 1


WAITING_FOR_LOCKS = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


async def test_two_administrators_cannot_both_leave_at_once(open_repository: OpenRepository, fleet: Fleet) -> None:
    ana, ole = await open_repository(ADMIN), await open_repository(OPERATOR)
    await set_role(ana, fleet.user_id(OPERATOR), HumanRole.ADMIN)

    async def demote(repository: Repository, email: str) -> bool:
        try:
            await set_role(repository, fleet.user_id(email), HumanRole.VIEWER)
        except ConsoleError:
            return False
        return True

    with psycopg.connect(fleet.administration) as holding:
        holding.execute("select from users where kind = 'human' for update")
        leaving = [asyncio.create_task(demote(*each)) for each in ((ana, OPERATOR), (ole, ADMIN))]
        for _ in range(500):
            if fleet.one(WAITING_FOR_LOCKS) == len(leaving):
                break
            await asyncio.sleep(0.01)

    assert sorted(await asyncio.gather(*leaving)) == [False, True]
    assert fleet.one("select count(*) from users where role = 'admin' and is_active") == 1


async def test_two_administrators_who_come_in_at_once_do_not_wait_for_each_other(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    ana, ole = await open_repository(ADMIN), await open_repository(OPERATOR)
    first = UserId("01900000-0000-7000-8000-000000000000")
    fleet.execute("update users set role = 'admin', last_seen_at = null where kind = 'human'")
    fleet.execute(
        "insert into users (team_id, id, email, full_name, role) values (%s, %s, 'al@example.com', 'Al', 'admin')",
        *(fleet.team_id(), first),
    )

    with psycopg.connect(fleet.administration) as holding:
        holding.execute("select from users where id = %s for update", (first,))
        changing = [
            asyncio.create_task(set_role(each, fleet.user_id(VIEWER), HumanRole.OPERATOR)) for each in (ana, ole)
        ]
        await somebody_waits_for_a_lock(fleet, len(changing))

    assert [(await each).role for each in changing] == [HumanRole.OPERATOR] * 2
    seen = "select count(*) from users where kind = 'human' and last_seen_at is not null"
    assert fleet.one(seen) == len(changing)


@pytest.mark.rule("U004-21")
async def test_a_blocked_person_is_out_at_once_and_can_come_back(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    ole, mine = fleet.user_id(OPERATOR), SessionId.new()
    opened = "insert into sessions (team_id, id, agent_id, user_id) values (%s, %s, %s, %s)"
    fleet.execute(opened, fleet.team_id(), SessionId.new(), fleet.agent_id("atlas"), ole)
    fleet.execute(opened, fleet.team_id(), mine, fleet.agent_id("atlas"), fleet.user_id(ADMIN))
    await operator.call(ME, Nothing())

    blocked = await deactivate(admin, ole)
    again = await deactivate(admin, ole)
    with pytest.raises(Unauthorized):
        await operator.call(ME, Nothing())
    open_sessions = fleet.execute("select id from sessions where status = 1")
    ended = fleet.one(
        "select last_used_at is not null from agent_runtime where agent_id = %s", fleet.agent_id("atlas")
    )
    back = await admin.call(USERS_ACTIVATE, UserAsked(user_id=ole))
    await admin.call(USERS_ACTIVATE, UserAsked(user_id=ole))

    assert (blocked.is_active, again, back.is_active) == (False, blocked, True)
    assert (open_sessions, ended) == ([(mine,)], True)
    assert (await operator.call(ME, Nothing())).user_id == ole
    assert audited(fleet) == [("user.deactivate", {"closed_sessions": 1}), ("user.activate", {"role": "operator"})]
    assert fleet.one("select reason from audit_log where action = 'user.deactivate'") == "laptop was stolen"


async def test_system_users_are_not_for_changing(repository: Repository, fleet: Fleet) -> None:
    (system, *_) = await users(repository, UserQuery(kind=UserKind.SYSTEM))

    for change in (
        set_role(repository, system.id, HumanRole.ADMIN),
        deactivate(repository, system.id),
        repository.call(USERS_ACTIVATE, UserAsked(user_id=system.id)),
    ):
        with pytest.raises(Conflict):
            await change

    assert await get(repository, system.id) == system
    assert audited(fleet) == []


async def test_another_teams_people_answer_like_missing_ones(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    operations: tuple[tuple[AnyOperation, dict[str, object]], ...] = (
        (USERS_GET, {}),
        (USERS_SET_ROLE, {"role": "viewer"}),
        (USERS_DEACTIVATE, {"reason": "x"}),
        (USERS_ACTIVATE, {}),
    )

    for operation, values in operations:
        said = []
        for user_id in (fleet.user_id(OPERATOR), UserId.new()):
            request = operation.request.model_validate({"user_id": user_id, **values})
            with pytest.raises(NotFound) as refused:
                await other.call(operation, request)
            said.append(str(refused.value).replace(str(user_id), ""))
        assert said[0] == said[1], operation.name
    assert [user.full_name for user in await users(other, UserQuery())] == ["Admin of other"]
    same_address = await other.call(USERS_PUT, KnownPerson(subject="x", email=OPERATOR, full_name="Ole"))
    assert same_address.role is HumanRole.VIEWER

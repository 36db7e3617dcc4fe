"""Users: the people of a team with their roles, and the system users its agents act as."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, ConsoleError, NotFound
from agent_console.domain.ids import AgentId, SessionId, TeamId, UserId
from agent_console.domain.kinds import HumanRole, UserKind
from agent_console.domain.records import Page
from agent_console.domain.users import KnownPerson, NewUser, User, UserAsked, UserDeactivation, UserQuery, UserRole
from agent_console.repository.operations.people import (
    ROLE_GRANTED,
    ROLE_REVOKED,
    USER_ACTIVATED,
    USER_CREATED,
    USER_DEACTIVATED,
    USER_PUT,
    USERS_ACTIVATE,
    USERS_CREATE,
    USERS_DEACTIVATE,
    USERS_GET,
    USERS_LIST,
    USERS_PUT,
    USERS_SET_ROLE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.work import Work, answers

RANK = {HumanRole.VIEWER: 0, HumanRole.OPERATOR: 1, HumanRole.ADMIN: 2}

creator = users.alias("creator")
changer = users.alias("changer")


def all_users(team_id: TeamId) -> Select[Any]:
    made = and_(creator.c.team_id == users.c.team_id, creator.c.id == users.c.created_by_user_id)
    changed = and_(changer.c.team_id == users.c.team_id, changer.c.id == users.c.updated_by_user_id)
    return (
        select(
            *(users.c[name] for name in User.model_fields if name in users.c),
            creator.c.full_name.label("created_by"),
            changer.c.full_name.label("updated_by"),
        )
        .select_from(users.outerjoin(creator, made).outerjoin(changer, changed))
        .where(users.c.team_id == team_id)
    )


@answers(USERS_LIST)
async def list_users(work: Work, query: UserQuery) -> Page[User]:
    """People are found by users_people_idx, however many agents there are; everyone by the primary key."""
    wanted = all_users(work.caller.team_id).order_by(users.c.id).limit(query.limit + 1)
    if (after := position(query.after, UserId)) is not None:
        wanted = wanted.where(users.c.id > after)
    kind = UserKind.HUMAN if query.role is not None and query.kind is None else query.kind
    if kind is not None:
        wanted = wanted.where(users.c.kind == kind.value)
    if query.role is not None:
        wanted = wanted.where(users.c.role == query.role.value)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[User], rows, query.limit, UserId)


@answers(USERS_GET)
async def get_user(work: Work, asked: UserAsked) -> User:
    return await _user(work, asked.user_id)


async def _user(work: Work, user_id: UserId) -> User:
    wanted = all_users(work.caller.team_id).where(users.c.id == user_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise no_user(user_id)
    return User.model_validate(dict(found))


def no_user(user_id: UserId) -> ConsoleError:
    return NotFound(f"There is no user {user_id}.", hint="List them: agent-console users list")


async def _tell(
    work: Work, user_id: UserId, action: str, facts: Facts, at: datetime, reason: str | None = None
) -> None:
    event = AuditEvent(
        action=action, resource_type="user", resource_id=str(user_id), metadata=facts, reason=reason
    )
    await audit.append(work, event, at)
    work.announce(Topic.USERS, user_id)


async def _change(work: Work, user_id: UserId, **values: Any) -> None:
    await work.connection.execute(
        update(users)
        .where(users.c.team_id == work.caller.team_id, users.c.id == user_id)
        .values(values | {"updated_by_user_id": work.caller.user_id, "updated_at": func.now()})
    )


def administrators_and(team_id: TeamId, user_id: UserId) -> Select[Any]:
    """In one order. By the primary key and users_people_idx together, however many agents there are."""
    leading = and_(users.c.kind == "human", users.c.role == HumanRole.ADMIN.value, users.c.is_active)
    return (
        select(users, func.now().label("at"))
        .where(users.c.team_id == team_id, or_(users.c.id == user_id, leading))
        .order_by(users.c.id)
    )


async def _locked(work: Work, user_id: UserId) -> tuple[Row[Any], Collection[UserId]]:
    """The person and every active administrator, locked in one order: two who leave at once can't both go."""
    wanted = administrators_and(work.caller.team_id, user_id).with_for_update(of=users, key_share=True)
    rows = (await work.connection.execute(wanted)).all()
    person = next((row for row in rows if row.id == user_id), None)
    if person is None:
        raise no_user(user_id)
    if person.kind != UserKind.HUMAN:
        raise Conflict(
            f"{person.full_name} is the system user of an agent and can't be changed.",
            hint="Change the agent instead.",
        )
    return person, {row.id for row in rows if row.role == HumanRole.ADMIN and row.is_active}


def _keep_an_administrator(person: Row[Any], administrators: Collection[UserId]) -> None:
    if set(administrators) == {person.id}:
        raise Conflict(
            f"{person.full_name} is the last active administrator.",
            hint="Make somebody else an administrator first.",
        )


@answers(USERS_CREATE)
async def create_user(work: Work, new: NewUser) -> User:
    user_id = UserId.new()
    at = await _add(work, user_id, new.email, new.full_name, new.role, new.subject)
    if at is None:
        raise Conflict("Somebody with this e-mail address or subject is here already.", hint="List the users.")
    await _tell(work, user_id, USER_CREATED, {"role": new.role.value}, at)
    return await _user(work, user_id)


async def _add(
    work: Work, user_id: UserId, email: str, full_name: str, role: HumanRole, subject: str | None
) -> datetime | None:
    """None when somebody has the address or the subject; whoever comes second waits here for the first."""
    made = await work.connection.execute(
        insert(users)
        .values(
            team_id=work.caller.team_id,
            id=user_id,
            email=email,
            full_name=full_name,
            role=role.value,
            subject=subject,
            created_by_user_id=work.caller.user_id,
            updated_by_user_id=work.caller.user_id,
        )
        .on_conflict_do_nothing()
        .returning(users.c.created_at)
    )
    at: datetime | None = made.scalar()
    return at


@answers(USERS_PUT)
async def put_user(work: Work, known: KnownPerson) -> User:
    """The subject decides who it is; somebody known only by the address is given the subject."""
    person = await _known(work, known)
    if person is None:
        user_id = UserId.new()
        at = await _add(work, user_id, known.email, known.full_name, HumanRole.VIEWER, known.subject)
        if at is not None:
            facts: Facts = {"changed": "created", "role": HumanRole.VIEWER.value}
            await _tell(work, user_id, USER_PUT, facts, at)
            return await _user(work, user_id)
        person = await _known(work, known)
    if person is None or person.subject not in (None, known.subject):
        raise Conflict(
            "The e-mail address belongs to somebody with another subject.",
            hint="Two people can't share an address: correct it at the identity provider.",
        )
    changed = {name: value for name, value in known.model_dump().items() if value != person._mapping[name]}
    if changed:
        await _change(work, person.id, **changed)
        facts = {"changed": ", ".join(sorted(changed)), "role": person.role}
        await _tell(work, person.id, USER_PUT, facts, person.at)
    return await _user(work, person.id)


async def _known(work: Work, known: KnownPerson) -> Row[Any] | None:
    """Served by users_subject_uq and users_email_uq."""
    of_team = select(users, func.now().label("at")).where(users.c.team_id == work.caller.team_id)
    for same in (users.c.subject == known.subject, func.lower(users.c.email) == func.lower(known.email)):
        wanted = of_team.where(same).with_for_update(of=users, key_share=True)
        if (found := (await work.connection.execute(wanted)).first()) is not None:
            return found
    return None


@answers(USERS_SET_ROLE)
async def set_role(work: Work, wanted: UserRole) -> User:
    person, administrators = await _locked(work, wanted.user_id)
    old = HumanRole(person.role)
    if old is not wanted.role:
        _keep_an_administrator(person, administrators)
        await _change(work, person.id, role=wanted.role.value)
        action = ROLE_GRANTED if RANK[wanted.role] > RANK[old] else ROLE_REVOKED
        await _tell(work, person.id, action, {"old": old.value, "new": wanted.role.value}, person.at)
    return await _user(work, person.id)


# Served by sessions_open_idx: only what is open is looked at. The agents' states are locked before their
# sessions, as everyone locks them.
LOCK_AGENTS = text("""
    select agent_id
      from agent_runtime
     where team_id = :team_id
       and agent_id in (select agent_id from sessions
                         where team_id = :team_id and user_id = :user_id and status = 1)
     order by agent_id
       for no key update
""")
# The agents' timers run from here.
CLOSE_SESSIONS = text("""
    with closed as (
        update sessions
           set status = 2, closed_at = now(), close_reason = 'user deactivated'
         where team_id = :team_id and user_id = :user_id and status = 1
        returning id, agent_id
    ), ended as (
        update agent_runtime r
           set last_used_at = now()
         where r.team_id = :team_id and r.agent_id in (select agent_id from closed)
    )
    select id, agent_id from closed
""")


@answers(USERS_DEACTIVATE)
async def deactivate_user(work: Work, blocked: UserDeactivation) -> User:
    """Every call asks whether its caller is active, so tokens need not be touched; sessions are closed."""
    person, administrators = await _locked(work, blocked.user_id)
    if person.is_active:
        _keep_an_administrator(person, administrators)
        await _change(work, person.id, is_active=False)
        parameters = {"team_id": work.caller.team_id, "user_id": person.id}
        await work.connection.execute(LOCK_AGENTS, parameters)
        closed = (await work.connection.execute(CLOSE_SESSIONS, parameters)).all()
        for session in closed:
            work.announce(Topic.SESSIONS, SessionId.of(session.id))
            work.announce(Topic.AGENTS, AgentId.of(session.agent_id))
        facts: Facts = {"closed_sessions": len(closed)}
        await _tell(work, person.id, USER_DEACTIVATED, facts, person.at, blocked.reason)
    return await _user(work, person.id)


@answers(USERS_ACTIVATE)
async def activate_user(work: Work, asked: UserAsked) -> User:
    person, _ = await _locked(work, asked.user_id)
    if not person.is_active:
        await _change(work, person.id, is_active=True)
        await _tell(work, person.id, USER_ACTIVATED, {"role": person.role}, person.at)
    return await _user(work, person.id)

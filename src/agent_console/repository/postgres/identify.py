"""Who is calling: asked of the database with every call, so that a revoked right ends at once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit import NOWHERE, Place
from agent_console.domain.errors import ConfigError, ConsoleError, Forbidden, Unauthorized
from agent_console.domain.identity import AuthSource, Caller, WorkerAuthContext
from agent_console.domain.ids import AgentId, OperatorTokenId, TeamId, UserId, WorkerTokenId
from agent_console.domain.permissions import Role
from agent_console.domain.secrets import Secret, same_hash
from agent_console.repository.operations.credentials import AUTH_SUCCEEDED

Identify = Callable[[AsyncConnection], Awaitable[Caller]]

TEAMS = text("select id, slug from teams where cast(:slug as text) is null or slug = :slug order by slug limit 20")

# A minute is exact enough, and reading must not cost a write. Not every session may write at all.
MAY_WRITE = (
    "current_setting('transaction_read_only') = 'off' and has_column_privilege('users', 'last_seen_at', 'update')"
)
UNSEEN = f"(u.last_seen_at is null or u.last_seen_at < now() - interval '1 minute') and {MAY_WRITE}"
UNUSED = f"(k.last_used_at is null or k.last_used_at < now() - interval '1 minute') and {MAY_WRITE}"

# Several may fit only when nobody was named: then one administrator, if there is just one, is meant.
PEOPLE = text(f"""
    select u.id, u.full_name, u.role, u.is_active, {UNSEEN} as unseen
      from users u
     where u.team_id = :team_id
       and u.kind = 'human'
       and case when cast(:user as text) is null then u.role = 'admin' and u.is_active
                else lower(u.email) = lower(:user) end
     order by u.id
     limit 2
""")  # noqa: S608

PERSON = text(f"""
    select u.id, u.full_name, u.role, u.is_active, {UNSEEN} as unseen
      from users u
     where u.team_id = :team_id and u.id = :user_id and u.kind = 'human'
""")  # noqa: S608

# Who is being written by another call was just seen: never wait for the row.
SEEN = text("""
    update users
       set last_seen_at = now()
     where team_id = :team_id
       and id = (select id from users
                  where team_id = :team_id and id = :user_id for no key update skip locked)
""")
# A token that comes for the first time, or again after half a day, is somebody coming in: that is kept with it.
USED = text("""
    with used as (
        update operator_tokens
           set last_used_at = now()
         where team_id = :team_id
           and id = (select id from operator_tokens
                      where team_id = :team_id and id = :token_id for no key update skip locked)
     returning id
    )
    select append_audit(:team_id, 'human', :user_id, null, :name, cast(:action as text), 'operator_token', :token,
                        ip => cast(:ip as inet), user_agent => cast(:user_agent as text))
      from used
     where :comes_in
""")

BY_OPERATOR_TOKEN = text(f"""
    select k.token_hash, k.revoked_at is not null as revoked, k.expires_at <= now() as expired,
           {UNUSED} as unused,
           coalesce(k.last_used_at < now() - interval '12 hours', true) as comes_in,
           u.id, u.full_name, u.role, u.is_active, t.slug, {UNSEEN} as unseen
      from operator_tokens k
      join users u on u.team_id = k.team_id and u.id = k.user_id
      join teams t on t.id = k.team_id
     where k.team_id = :team_id and k.id = :token_id and u.kind = 'human'
""")  # noqa: S608

BY_AGENT_KEY = text("""
    select a.api_key_hash, a.previous_key_hash, a.previous_key_ends_at > now() as overlapping,
           a.id as agent_id, a.name, a.worker_id, a.system_user_id,
           a.revoked_at is not null as revoked, a.deleted_at is not null as deleted,
           null::jsonb as allowed_repositories, null::jsonb as allowed_job_types, r.capabilities, t.slug
      from agents a
      join agent_runtime r on r.team_id = a.team_id and r.agent_id = a.id
      join teams t on t.id = a.team_id
     where a.team_id = :team_id and a.id = :agent_id
""")

# The agent is found by agents_worker_id_uq, which holds the living only.
BY_WORKER_TOKEN = text("""
    select k.token_hash, k.is_active, k.expires_at <= now() as expired,
           k.allowed_repositories, k.allowed_job_types, coalesce(k.capabilities, r.capabilities) as capabilities,
           a.id as agent_id, a.name, a.worker_id, a.system_user_id,
           a.revoked_at is not null as revoked, t.slug
      from worker_tokens k
      join agents a on a.team_id = k.team_id and a.worker_id = k.worker_id and a.deleted_at is null
      join agent_runtime r on r.team_id = a.team_id and r.agent_id = a.id
      join teams t on t.id = k.team_id
     where k.team_id = :team_id and k.id = :token_id
""")

NO_HASH = "0" * 64


def refused_credential() -> ConsoleError:
    return Unauthorized(
        "The credential is not valid here.",
        hint="It may have been revoked or have expired; ask an administrator for a new token.",
    )


def revoked_agent() -> ConsoleError:
    return Forbidden(
        "This agent is revoked.",
        hint="Its operator can say why; to come back it has to be registered again.",
        details={"reason": "revoked"},
    )


def by_token(secret: Secret, place: Place = NOWHERE) -> Identify:
    """Whose secret it is, and from where a person brings it. Unknown, wrong, revoked and expired tokens answer
    alike, after the same work.

    Only an agent that was revoked is told so: its key is genuine, and its operator has to know. A
    registration token opens one door of its own and is no credential here.
    """
    match secret.owner:
        case OperatorTokenId():
            return ByOperatorToken(secret, place)
        case AgentId():
            return ByAgentKey(secret)
        case WorkerTokenId():
            return ByWorkerToken(secret)
        case _:
            raise Unauthorized(
                "A registration token only lets an agent in; it is no credential.",
                hint="Register with it, and use the key that comes with the answer.",
            )


@dataclass(frozen=True)
class BySecret:
    """What proves the caller can be seen from outside, so that many can be proved in one statement."""

    secret: Secret


@dataclass(frozen=True)
class ByOperatorToken(BySecret):
    """The same person wherever the token is brought from."""

    place: Place = field(default=NOWHERE, compare=False)

    async def __call__(self, connection: AsyncConnection) -> Caller:
        return await _person(connection, self.secret, self.place)


class ByAgentKey(BySecret):
    async def __call__(self, connection: AsyncConnection) -> Caller:
        return await _agent(connection, self.secret)


class ByWorkerToken(BySecret):
    async def __call__(self, connection: AsyncConnection) -> Caller:
        return await _worker(connection, self.secret)


async def _person(connection: AsyncConnection, secret: Secret, place: Place) -> Caller:
    token = {"team_id": secret.team_id, "token_id": secret.owner}
    found = (await connection.execute(BY_OPERATOR_TOKEN, token)).first()
    genuine = same_hash(found.token_hash if found else NO_HASH, secret.hash)
    if found is None or not genuine or found.revoked or found.expired or not found.is_active:
        raise refused_credential()
    if found.unused:
        coming = {"action": AUTH_SUCCEEDED, "token": str(secret.owner), "comes_in": found.comes_in}
        coming |= {"ip": place.ip, "user_agent": place.user_agent}
        await connection.execute(USED, token | coming | {"user_id": found.id, "name": found.full_name})
    if found.unseen:
        await connection.execute(SEEN, {"team_id": secret.team_id, "user_id": found.id})
    return Caller(
        team_id=secret.team_id,
        team=found.slug,
        user_id=UserId.of(found.id),
        name=found.full_name,
        role=found.role,
        auth_source=AuthSource.OPERATOR_TOKEN,
        token_id=OperatorTokenId.of(secret.owner),
    )


async def _agent(connection: AsyncConnection, secret: Secret) -> Caller:
    """Both keys are compared every time, so that an overlap can't be told from outside."""
    key = {"team_id": secret.team_id, "agent_id": secret.owner}
    found = (await connection.execute(BY_AGENT_KEY, key)).first()
    current = same_hash(found.api_key_hash if found else NO_HASH, secret.hash)
    previous = same_hash((found.previous_key_hash if found else None) or NO_HASH, secret.hash)
    if found is None or not (current or (previous and found.overlapping)) or found.deleted:
        raise refused_credential()
    return _acting_agent(secret, found, AuthSource.API_KEY)


async def _worker(connection: AsyncConnection, secret: Secret) -> Caller:
    token = {"team_id": secret.team_id, "token_id": secret.owner}
    found = (await connection.execute(BY_WORKER_TOKEN, token)).first()
    genuine = same_hash(found.token_hash if found else NO_HASH, secret.hash)
    if found is None or not genuine or not found.is_active or found.expired:
        raise refused_credential()
    return _acting_agent(secret, found, AuthSource.WORKER_TOKEN)


def _acting_agent(secret: Secret, found: Row[Any], source: AuthSource) -> Caller:
    if found.revoked:
        raise revoked_agent()
    return Caller(
        team_id=secret.team_id,
        team=found.slug,
        user_id=UserId.of(found.system_user_id),
        name=found.name,
        role=Role.AGENT,
        auth_source=source,
        agent_id=AgentId.of(found.agent_id),
        worker=WorkerAuthContext(
            worker_id=found.worker_id,
            auth_source=source,
            allowed_repositories=found.allowed_repositories,
            allowed_job_types=found.allowed_job_types,
            capabilities=found.capabilities,
        ),
    )


def require_worker(caller: Caller, worker_id: str) -> WorkerAuthContext:
    """What a worker may do, if the id it gives in its request is the one its credential proved."""
    if caller.worker is None or caller.worker.worker_id != worker_id:
        raise Forbidden(
            "The worker id of the request is not the one of its credential.",
            hint="Send your own worker id, or the credential of that worker.",
            details={"field": "worker_id"},
        )
    return caller.worker


def by_name(team: str | None, user: str | None) -> Identify:
    """A direct session: the profile names team and person, the database's own login proves the rest."""

    async def identify(connection: AsyncConnection) -> Caller:
        team_id, slug = await _team(connection, team)
        if user is not None and user.lower().startswith("usr_"):
            parameters = {"team_id": team_id, "user_id": UserId.parse(user)}
            rows = (await connection.execute(PERSON, parameters)).all()
        else:
            rows = (await connection.execute(PEOPLE, {"team_id": team_id, "user": user})).all()
        if len(rows) != 1:
            raise _nobody(slug, user, len(rows))
        person = rows[0]
        if not person.is_active:
            raise Unauthorized(f"{user} is deactivated in team {slug}.", hint="Ask an administrator.")
        if person.unseen:
            await connection.execute(SEEN, {"team_id": team_id, "user_id": person.id})
        return Caller(
            team_id=team_id,
            team=slug,
            user_id=UserId.of(person.id),
            name=person.full_name,
            role=person.role,
            auth_source=AuthSource.DATABASE,
        )

    return identify


async def _team(connection: AsyncConnection, slug: str | None) -> tuple[TeamId, str]:
    rows = (await connection.execute(TEAMS, {"slug": slug})).all()
    if len(rows) == 1:
        return TeamId.of(rows[0].id), rows[0].slug
    if slug is not None:
        raise ConfigError(f"There is no team {slug!r} in this database.", hint="Check `team` in your profile.")
    if not rows:
        hint = "Make one: agent-console db add-team --help"
        raise ConfigError("There is no team in this database yet.", hint=hint)
    names = ", ".join(row.slug for row in rows)
    raise ConfigError("The database holds several teams.", hint=f"Set `team` to one of: {names}.")


def _nobody(team: str, user: str | None, found: int) -> ConsoleError:
    if user is not None:
        return ConfigError(f"{user!r} is nobody in team {team}.", hint="Check `user` in your profile.")
    why = "no administrator" if found == 0 else "several administrators"
    return ConfigError(
        f"The profile does not say who acts, and team {team} has {why}.",
        hint="Set `user` to your e-mail address or usr_ id.",
    )

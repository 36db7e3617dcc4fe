"""Who is calling: asked of the database with every call, so that a revoked right ends at once."""

from collections.abc import Awaitable, Callable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.errors import ConfigError, ConsoleError, Unauthorized
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import TeamId, UserId
from agent_console.domain.secrets import Secret, same_hash

Identify = Callable[[AsyncConnection], Awaitable[Caller]]

TEAMS = text("select id, slug from teams where cast(:slug as text) is null or slug = :slug order by slug limit 20")

# Several may fit only when nobody was named: then one administrator, if there is just one, is meant.
PEOPLE = text("""
    select id, full_name, role, is_active
      from users
     where team_id = :team_id
       and kind = 'human'
       and case when cast(:user as text) is null then role = 'admin' and is_active
                else lower(email) = lower(:user) end
     order by id
     limit 2
""")

PERSON = text("""
    select id, full_name, role, is_active
      from users
     where team_id = :team_id and id = :user_id and kind = 'human'
""")

BY_TOKEN = text("""
    select k.token_hash, k.revoked_at is not null as revoked, k.expires_at <= now() as expired,
           u.id, u.full_name, u.role, u.is_active, t.slug
      from operator_tokens k
      join users u on u.team_id = k.team_id and u.id = k.user_id
      join teams t on t.id = k.team_id
     where k.team_id = :team_id and k.id = :token_id
""")

_NO_HASH = "0" * 64


def _refused() -> ConsoleError:
    return Unauthorized(
        "The credential is not valid here.",
        hint="It may have been revoked or have expired; ask an administrator for a new token.",
    )


def by_token(secret: Secret) -> Identify:
    """A person's token. Unknown, wrong, revoked and expired all answer alike, after the same work."""

    async def identify(connection: AsyncConnection) -> Caller:
        found = (await connection.execute(BY_TOKEN, {"team_id": secret.team_id, "token_id": secret.owner})).first()
        genuine = same_hash(found.token_hash if found else _NO_HASH, secret.hash)
        if found is None or not genuine or found.revoked or found.expired or not found.is_active:
            raise _refused()
        return Caller(
            team_id=secret.team_id,
            team=found.slug,
            user_id=UserId.of(found.id),
            name=found.full_name,
            role=found.role,
            auth_source=AuthSource.OPERATOR_TOKEN,
        )

    return identify


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
        raise ConfigError("There is no team in this database yet.", hint="Run: agent-console demo")
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

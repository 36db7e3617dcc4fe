"""Teams and their first administrators: nobody inside a team can make one."""

import getpass

import sqlalchemy
import sqlalchemy.exc
from sqlalchemy import Connection, insert, select

from agent_console.database.address import administration_engine, refused
from agent_console.database.roles import become_owner
from agent_console.database.schema import require_served
from agent_console.database.tables import teams, users
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import TeamId, UserId

TEAM = "local"


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"


def ensure_team(dsn: str) -> None:
    """Make team and person when there is no team at all; two programs at once make one."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        connection.exec_driver_sql("lock table teams in share row exclusive mode")
        if connection.scalar(select(teams.c.id).limit(1)) is not None:
            return
        login = _login()
        _insert(connection, TEAM, "Local fleet", f"{login}@localhost", login)


def add_team(dsn: str, slug: str, name: str, email: str, full_name: str) -> None:
    """Make a team with one administrator; as whoever may migrate."""
    with refused(dsn), administration_engine(dsn).connect() as connection:
        become_owner(connection)
        if not sqlalchemy.inspect(connection).has_table(teams.name):
            require_served(None, listed=False)
        if connection.scalar(select(teams.c.id).where(teams.c.slug == slug)) is not None:
            raise Conflict(f"There is a team {slug} already.", hint="Its administrators add people: users create.")
        try:
            _insert(connection, slug, name, email, full_name)
            connection.commit()
        except sqlalchemy.exc.IntegrityError as error:
            raise Invalid(
                "A team can't be called that, or its administrator can't.",
                hint="A short name is made of a-z, 0-9 and -, at most 63 of them; no name may be blank.",
            ) from error


def _insert(connection: Connection, slug: str, name: str, email: str, full_name: str) -> None:
    team_id = TeamId.new()
    connection.execute(insert(teams).values(id=team_id, slug=slug, name=name))
    connection.execute(
        insert(users).values(team_id=team_id, id=UserId.new(), email=email, full_name=full_name, role="admin")
    )

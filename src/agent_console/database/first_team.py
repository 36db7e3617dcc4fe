"""The first team of an empty database, with the person who opened it as its administrator."""

import getpass

from sqlalchemy import insert, select

from agent_console.database.address import administration_engine, refused
from agent_console.database.tables import teams, users
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
        team_id, login = TeamId.new(), _login()
        connection.execute(insert(teams).values(id=team_id, slug=TEAM, name="Local fleet"))
        connection.execute(
            insert(users).values(
                team_id=team_id,
                id=UserId.new(),
                email=f"{login}@localhost",
                full_name=login,
                role="admin",
            )
        )

"""How the queue of a team stands: for every screen that has to show that it is paused."""

from sqlalchemy import and_, select

from agent_console.database.tables import teams, users
from agent_console.domain.pausing import Pause
from agent_console.repository.postgres.work import Work


async def pause_of(work: Work) -> Pause | None:
    """Two look-ups by key."""
    pauser = and_(users.c.team_id == teams.c.id, users.c.id == teams.c.paused_by_user_id)
    wanted = (
        select(
            teams.c.pause_mode.label("mode"),
            teams.c.pause_reason.label("reason"),
            teams.c.paused_at.label("since"),
            users.c.full_name.label("by"),
        )
        .select_from(teams.outerjoin(users, pauser))
        .where(teams.c.id == work.caller.team_id, teams.c.paused_at.is_not(None))
    )
    found = (await work.connection.execute(wanted)).mappings().first()
    return None if found is None else Pause.model_validate(dict(found))

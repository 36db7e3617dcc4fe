"""The duty to end approvals that nobody decided in time."""

from sqlalchemy import func, select, text

from agent_console.database.tables import approvals
from agent_console.domain.audit import SYSTEM
from agent_console.domain.duties import APPROVALS
from agent_console.domain.ids import TeamId
from agent_console.repository.postgres.approval_endings import EXPIRED, end_approvals
from agent_console.repository.postgres.duty_declared import Duty, for_each_team, in_turn
from agent_console.repository.postgres.repository import Backend

BATCH = 200

# One look into approvals_pending_idx for each team.
TEAMS_WITH_EXPIRED = text("""
    select t.id as team_id
      from teams t
     cross join lateral (select from approvals a
                          where a.team_id = t.id and a.state = 'pending' and a.expires_at <= now()
                          order by a.expires_at
                          limit 1) as expired
""")


async def expire_approvals(backend: Backend) -> int | None:
    return await for_each_team(backend, TEAMS_WITH_EXPIRED, _expire, BATCH)


async def _expire(backend: Backend, team_id: TeamId) -> int | None:
    """Whoever decides one just now finds out by itself that it is over."""
    async with in_turn(backend, APPROVALS.name) as connection:
        if connection is None:
            return None
        at = (await connection.execute(select(func.now()))).scalar_one()
        over = approvals.c.expires_at <= func.now()
        ended = await end_approvals(
            connection, team_id, SYSTEM, at, EXPIRED, over, at_most=BATCH, pass_over_locked=True
        )
    for notice in ended:
        backend.announcer.tell(team_id, notice)
    return len(ended)


EXPIRE_APPROVALS = Duty.of(APPROVALS, expire_approvals)

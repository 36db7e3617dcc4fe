"""The duty to end approvals that nobody decided in time, and those that nobody waits for any more."""

from sqlalchemy import ColumnElement, func, text

from agent_console.database.tables import approvals
from agent_console.domain.audit import SYSTEM
from agent_console.domain.duties import APPROVALS
from agent_console.domain.ids import TeamId
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.duties.declared import Duty, for_each_team, in_turn
from agent_console.repository.postgres.policy.approval_endings import (
    EXPIRED,
    ITS_RUN_IS_OVER,
    RUN_OVER,
    Ending,
    end_approvals,
)
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
# Most runs end in the middle of the queue's own work, which must not wait for whoever decides a request just now.
# So those that ended lately are looked up in runs_in_vain_idx, and what waits for them in approvals_parent_idx. A
# run is ended by a process that does this duty as well; what slips through all the same can no longer be approved.
TEAMS_WITH_RUNS_OVER = text("""
    select t.id as team_id
      from teams t
     cross join lateral (select from runs r
                           join approvals a on a.team_id = r.team_id and a.parent_run_id = r.id
                          where r.team_id = t.id and r.status in ('failed', 'cancelled', 'timeout')
                            and r.ended_at > now() - interval '10 minutes' and a.state = 'pending'
                          order by r.ended_at
                          limit 1) as left_alone
""")


async def end_due_approvals(backend: Backend) -> int | None:
    expired = await for_each_team(backend, TEAMS_WITH_EXPIRED, _expire, BATCH)
    left_alone = await for_each_team(backend, TEAMS_WITH_RUNS_OVER, _withdraw, BATCH)
    return None if expired is None and left_alone is None else (expired or 0) + (left_alone or 0)


async def _expire(backend: Backend, team_id: TeamId) -> int | None:
    return await _end(backend, team_id, EXPIRED, approvals.c.expires_at <= func.now())


async def _withdraw(backend: Backend, team_id: TeamId) -> int | None:
    return await _end(backend, team_id, RUN_OVER, ITS_RUN_IS_OVER)


async def _end(backend: Backend, team_id: TeamId, ending: Ending, which: ColumnElement[bool]) -> int | None:
    """Whoever decides one just now finds out by itself that it is over."""
    async with in_turn(backend, APPROVALS.name) as connection:
        if connection is None:
            return None
        at = await transaction_time(connection)
        ended = await end_approvals(
            connection, team_id, SYSTEM, at, ending, which, at_most=BATCH, pass_over_locked=True
        )
    for notice in ended:
        backend.announcer.tell(team_id, notice)
    return len(ended)


END_APPROVALS = Duty.of(APPROVALS, end_due_approvals)

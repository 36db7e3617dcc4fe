"""Who is reading a request just now. Nobody is kept out by it: it is told, so that two do not decide unawares."""

from sqlalchemy import text

from agent_console.domain.approvals import ApprovalAsked, Looker, Looking
from agent_console.domain.ids import ApprovalId
from agent_console.domain.records import Page
from agent_console.repository.operations.approvals import APPROVALS_LOOK, APPROVALS_LOOKERS
from agent_console.repository.postgres.policy.approval_lists import require_readable
from agent_console.repository.postgres.work import Work, answers

# Whoever comes back after a while looks anew: the visit before is over.
LOOK = text("""
    insert into approval_looks as l (team_id, approval_id, user_id, session)
    values (:team_id, :approval_id, :user_id, :session)
    on conflict (team_id, approval_id, user_id, session) do update
       set begun_at = case when l.seen_at < now() - interval '15 seconds' then now() else l.begun_at end,
           seen_at = now()
""")

# The table holds who looks now and little else, so a walk over a team's rows is short. What another clears away at
# this moment is left to them: nobody waits.
CLEAR_AWAY = text("""
    delete from approval_looks
     where (team_id, approval_id, user_id, session) in (
           select team_id, approval_id, user_id, session
             from approval_looks
            where team_id = :team_id and seen_at < now() - interval '1 minute'
            limit 100
              for update skip locked)
""")

# One line for each console: somebody may have two open. Served by the primary key.
LOOKERS = text("""
    select l.user_id, l.begun_at as since, l.seen_at, u.full_name as name
      from approval_looks l
      join users u on u.team_id = l.team_id and u.id = l.user_id
     where l.team_id = :team_id and l.approval_id = :approval_id and l.seen_at > now() - interval '15 seconds'
       and not (l.user_id = :user_id and l.session = :session)
     order by l.begun_at, l.user_id
     limit 50
""")


@answers(APPROVALS_LOOK)
async def look(work: Work, looking: Looking) -> Page[Looker]:
    await require_readable(work, looking.approval_id)
    await work.connection.execute(CLEAR_AWAY, {"team_id": work.caller.team_id})
    await work.connection.execute(LOOK, _who(work, looking.approval_id, looking.session))
    return await _others(work, looking.approval_id, looking.session)


@answers(APPROVALS_LOOKERS)
async def lookers(work: Work, asked: ApprovalAsked) -> Page[Looker]:
    await require_readable(work, asked.approval_id)
    return await _others(work, asked.approval_id, "")


async def _others(work: Work, approval_id: ApprovalId, session: str) -> Page[Looker]:
    found = (await work.connection.execute(LOOKERS, _who(work, approval_id, session))).mappings().all()
    return Page[Looker].model_validate({"items": [dict(row) for row in found]})


def _who(work: Work, approval_id: ApprovalId, session: str) -> dict[str, object]:
    caller = work.caller
    return {
        "team_id": caller.team_id,
        "approval_id": approval_id,
        "user_id": caller.user_id,
        "session": session,
    }

"""Where in the trail a time lies. Numbers and positions grow with time, so it is found by halving, with no index.

Only about: an act carries the time at which its transaction began, and its number is taken later. What began
within the slack is found all the same; whoever asks still compares the times themselves.
"""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.ids import TeamId

SLACK = timedelta(hours=1)

# Each step is one look into audit_log_seq_idx.
SEQ_AT = text("""
    with recursive halved (low, high) as (
        select (select seq from audit_log where team_id = :team_id order by seq limit 1),
               (select seq + 1 from audit_log where team_id = :team_id order by seq desc limit 1)
         union all
        select case when act.created_at < :moment then act.seq + 1 else low end,
               case when act.created_at < :moment then high else (low + high) / 2 end
          from halved
          cross join lateral (select seq, created_at from audit_log
                               where team_id = :team_id and seq >= (low + high) / 2 order by seq limit 1) as act
         where low < high
    )
    select max(low) from halved
""")
# Each step is one look into the primary key.
POSITION_AT = text("""
    with recursive halved (low, high) as (
        select (select position from audit_seals where team_id = :team_id order by position limit 1),
               (select position + 1 from audit_seals where team_id = :team_id order by position desc limit 1)
         union all
        select case when seal.audit_created_at < :moment then seal.position + 1 else low end,
               case when seal.audit_created_at < :moment then high else (low + high) / 2 end
          from halved
          cross join lateral (select position, audit_created_at from audit_seals
                               where team_id = :team_id and position >= (low + high) / 2
                               order by position limit 1) as seal
         where low < high
    )
    select max(low) from halved
""")


async def seq_at(connection: AsyncConnection, team_id: TeamId, moment: datetime) -> int:
    """No act from this moment on has a smaller number."""
    found = (await connection.execute(SEQ_AT, {"team_id": team_id, "moment": moment})).scalar()
    return 0 if found is None else int(found)


async def position_at(connection: AsyncConnection, team_id: TeamId, moment: datetime) -> int:
    """No act from this moment on was sealed at a smaller position."""
    found = (await connection.execute(POSITION_AT, {"team_id": team_id, "moment": moment})).scalar()
    return 1 if found is None else int(found)

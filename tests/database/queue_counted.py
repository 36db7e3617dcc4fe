"""Counting the queue twice: row by row, and as the counters tell it."""

from tests.database.team import Team

COUNTED = """
    select team_id, lane_id, status, count(*) as jobs from jobs group by team_id, lane_id, status
     order by team_id, lane_id, status
"""
TOLD = """
    select team_id, lane_id, status, sum(jobs) as jobs
      from (select team_id, lane_id, status, jobs from queue_counts
             union all
            select team_id, lane_id, went_to, jobs from queue_moves where went_to is not null
             union all
            select team_id, lane_id, came_from, -jobs from queue_moves where came_from is not null) as told
     where lane_id is not null
     group by team_id, lane_id, status
    having sum(jobs) <> 0
     order by team_id, lane_id, status
"""
# In one statement, so that both are asked about the same moment.
BOTH = f"""
    select (select json_agg(c) from ({COUNTED}) as c)::text is not distinct from
           (select json_agg(t) from ({TOLD}) as t)::text as same
"""


def same_as_counted(team: Team) -> bool:
    (found,) = team.execute(BOTH)
    return found["same"] is True


def fold(team: Team, *, after: int = 0, at_most: int = 1000) -> tuple[object, object]:
    """The last number that was folded, and how many."""
    (done,) = team.execute("select * from fold_queue_moves(%s, %s)", after, at_most)
    return done["last_id"], done["folded"]

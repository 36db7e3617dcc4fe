"""The duty to seal: committed acts are appended to the chain of their team, each linked to the one before it.

Whoever writes an act waits for nobody; the seal follows within a second. One process at a time seals a team's
acts, in the order of their transactions, and the database itself refuses a second chain beside the first.
"""

from collections.abc import AsyncIterator

from sqlalchemy import text

from agent_console.domain.duties import SEALS
from agent_console.domain.ids import TeamId
from agent_console.repository.port import Topic
from agent_console.repository.postgres.duties.declared import Duty, each_by_itself, in_turn
from agent_console.repository.postgres.repository import Backend

BATCH = 5_000
# Who has fallen behind catches up, but no team keeps the others waiting for long.
BATCHES_IN_A_ROUND = 20

# Two looks into audit_log_order_idx for each team: the chain's end, and whether something finished lies behind it.
# A chain that ends in a transaction still to come was restored from another cluster: the function sees to it.
TEAMS_TO_SEAL = text("""
    select t.id
      from teams t
      left join audit_heads h on h.team_id = t.id
     where h.audit_xid >= pg_snapshot_xmax(pg_current_snapshot())
        or exists (select from audit_log a
                    where a.team_id = t.id
                      and (a.xid, a.seq) > (coalesce(h.audit_xid, '0'), coalesce(h.audit_seq, 0))
                      and a.seq > coalesce(h.since_seq, 0)
                      and a.xid < pg_snapshot_xmin(pg_current_snapshot()))
""")
SEAL = text("select seal_audit(:team_id, :at_most)")


async def seal_acts(backend: Backend) -> int | None:
    async def batches(team_id: TeamId) -> AsyncIterator[int | None]:
        for _ in range(BATCHES_IN_A_ROUND):
            sealed = await backend.database.within_time(_seal(backend, team_id))
            if sealed:
                backend.announcer.announce(team_id, Topic.AUDIT, team_id)
            yield sealed
            if sealed is None or sealed < BATCH:
                break

    return await each_by_itself(await backend.database.within_time(_teams(backend)), batches)


async def _teams(backend: Backend) -> list[TeamId]:
    async with backend.database.reading() as connection:
        return [TeamId.of(row.id) for row in await connection.execute(TEAMS_TO_SEAL)]


async def _seal(backend: Backend, team_id: TeamId) -> int | None:
    async with in_turn(backend, SEALS.name) as connection:
        if connection is None:
            return None
        sealed = await connection.execute(SEAL, {"team_id": team_id, "at_most": BATCH})
        return int(sealed.scalar_one())


SEAL_ACTS = Duty.of(SEALS, seal_acts)

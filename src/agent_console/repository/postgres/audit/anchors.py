"""What holds a chain from outside it: the checkpoints of dropped months, and a seal that somebody kept."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit_proof import Damage, DamageKind
from agent_console.domain.audit_trail import KeptSeal
from agent_console.domain.errors import Invalid
from agent_console.domain.ids import TeamId
from agent_console.repository.postgres.audit.links import Link

# Dropping a month is itself an act, so what a checkpoint says has to stand in the trail too, in the same words.
# Only the acts of months that were dropped since are gone; the newest checkpoint always has its act.
CHECKPOINTS = text("""
    select to_char(c.month, 'YYYY-MM') as month, c.first_position, c.last_position,
           c.first_position = 1 + coalesce(lag(c.last_position) over by_month, 0) as follows,
           exists (select from audit_log a
                    where a.team_id = c.team_id and a.action = 'audit.prune' and a.created_at = c.created_at
                      and a.resource_type = 'audit_month' and a.resource_id = to_char(c.month, 'YYYY-MM')
                      and a.metadata = jsonb_build_object(
                              'checkpoint', c.id::text, 'first_position', c.first_position,
                              'last_position', c.last_position, 'last_hash', encode(c.last_hash, 'hex'),
                              'rows', c.rows)) as told,
           lead(c.month) over by_month is not null
               and exists (select from audit_checkpoints o
                            where o.team_id = c.team_id
                              and o.month = date_trunc('month', c.created_at at time zone 'UTC')::date)
               as forgotten
      from audit_checkpoints c
     where c.team_id = :team_id
    window by_month as (order by c.month)
     order by c.month
""")
SEAL_AT = text("select hash from audit_seals where team_id = :team_id and position = :position")


async def anchors_hold(
    connection: AsyncConnection, team_id: TeamId, kept: KeptSeal | None, end: int, start: Link
) -> Damage | None:
    """The first anchor that does not hold."""
    for checkpoint in (await connection.execute(CHECKPOINTS, {"team_id": team_id})).all():
        if (
            not checkpoint.follows
            or checkpoint.last_position > end
            or not (checkpoint.told or checkpoint.forgotten)
        ):
            message = f"the checkpoint of {checkpoint.month} is not the one that was written when it was dropped"
            return Damage(
                kind=DamageKind.DROPPED,
                position=checkpoint.last_position,
                audit_id=None,
                seq=None,
                message=message,
            )
    return None if kept is None else await _seal_holds(connection, team_id, kept, end, start)


async def _seal_holds(
    connection: AsyncConnection, team_id: TeamId, kept: KeptSeal, end: int, start: Link
) -> Damage | None:
    if kept.team_id != team_id:
        raise Invalid(
            "The seal is of another team.", hint="Verify it as somebody of that team.", details={"field": "seal"}
        )
    if kept.position < start.position:
        raise Invalid(
            f"The seal is of position {kept.position}; everything up to {start.position} was dropped since.",
            hint="Use a newer seal.",
            details={"field": "seal"},
        )
    if kept.position > end:
        message = f"the kept seal is of position {kept.position}, but the chain ends at {end}"
        return Damage(kind=DamageKind.CUT, position=end + 1, audit_id=None, seq=None, message=message)
    there = await connection.execute(SEAL_AT, {"team_id": team_id, "position": kept.position})
    found = start.hash if kept.position == start.position else there.scalar()
    if found is not None and found.hex() != kept.hash:
        message = f"at position {kept.position} stands another seal than the one that was kept"
        return Damage(kind=DamageKind.FORKED, position=kept.position, audit_id=None, seq=None, message=message)
    return None

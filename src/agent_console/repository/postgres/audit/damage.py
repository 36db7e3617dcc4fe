"""What happened to the trail where it does not hold: looked at only once something is known to be wrong."""

import hashlib
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit_proof import Damage, DamageKind
from agent_console.domain.ids import AuditId, TeamId
from agent_console.domain.records import LARGEST_NUMBER
from agent_console.repository.postgres.audit.links import LOWEST, Link

# The seal at a place, the record its hash is taken over, what became of its act, and who follows the link before.
LOOK = text("""
    select s.audit_id, s.audit_seq, s.prev_hash, s.hash, s.audit_created_at,
           record_send(row(s.team_id, s.position, s.audit_id, s.audit_created_at, s.audit_seq, s.audit_xid,
                           s.event_hash, s.prev_hash, s.sealed_at)) as record,
           a.id is not null as there, a.seq as act_seq, (a.seq, a.xid) = (s.audit_seq, s.audit_xid) as in_place,
           a.event_hash = s.event_hash as same_hash,
           (select o.id from audit_log o where o.team_id = s.team_id and o.seq = s.audit_seq limit 1) as by_seq,
           (select n.position from audit_seals n
             where n.team_id = s.team_id and n.prev_hash = :prev limit 1) as follower,
           to_regclass('audit_log_' || to_char(s.audit_created_at at time zone 'UTC', 'YYYY_MM')) is null
               as dropped,
           exists (select from audit_checkpoints c
                    where c.team_id = s.team_id
                      and c.month = date_trunc('month', s.audit_created_at at time zone 'UTC')::date) as excused
      from audit_seals s
      left join audit_log a on a.team_id = s.team_id and a.id = s.audit_id and a.created_at = s.audit_created_at
     where s.team_id = :team_id and s.position = :position
""")
LATER = text("select min(position) from audit_seals where team_id = :team_id and position > :position")
# By audit_log_order_idx, and for each act one look for its seal: an id may be given twice, at two times.
WITHOUT_SEAL = text("""
    select a.id, a.seq
      from audit_log a
      left join lateral (select true as sealed from audit_seals s
                          where s.team_id = a.team_id and s.audit_id = a.id and s.audit_created_at = a.created_at
                          limit 1) as s on true
     where a.team_id = :team_id and s.sealed is null
       and (a.xid, a.seq) > (cast(:first_xid as xid8), :first_seq)
       and (a.xid, a.seq) <= (cast(:last_xid as xid8), :last_seq)
       and a.seq between :low and :high
     order by a.xid, a.seq
     limit 1
""")
BETWEEN = text("""
    select count(*)
      from audit_log a
     where a.team_id = :team_id
       and (a.xid, a.seq) > (cast(:first_xid as xid8), :first_seq)
       and (a.xid, a.seq) <= (cast(:last_xid as xid8), :last_seq)
       and a.seq between :low and :high
""")
BEFORE_ALL, BEHIND_ALL = (0, LOWEST), (LARGEST_NUMBER, LARGEST_NUMBER)


async def damage_after(connection: AsyncConnection, team_id: TeamId, last: Link) -> Damage | None:
    """What is wrong with the link after the last one that holds; None when by now nothing is."""
    place = {"team_id": team_id, "position": last.position + 1}
    seal = (await connection.execute(LOOK, place | {"prev": last.hash})).first()
    if seal is None:
        later = (await connection.execute(LATER, place)).scalar()
        return _no_seal(last.position + 1, gone_from_the_end=later is None)
    found = _wrong_with_seal(seal, last) or _wrong_with_act(seal)
    if found is None:
        return None
    kind, message = found
    audit_id = AuditId.of(seal.audit_id)
    return Damage(
        kind=kind,
        position=last.position + 1,
        audit_id=audit_id,
        seq=seal.audit_seq,
        message=f"{audit_id}: {message}",
    )


def _no_seal(position: int, *, gone_from_the_end: bool) -> Damage:
    kind = DamageKind.CUT if gone_from_the_end else DamageKind.MISSING
    where = "and everything after it " if gone_from_the_end else ""
    message = f"the seal at position {position} {where}is gone"
    return Damage(kind=kind, position=position, audit_id=None, seq=None, message=message)


def _wrong_with_seal(seal: Row[Any], last: Link) -> tuple[DamageKind, str] | None:
    whole = hashlib.sha256(seal.record).digest() == seal.hash
    if seal.prev_hash != last.hash:
        if seal.follower is not None:
            return DamageKind.REORDERED, f"its seal stands where the one at position {seal.follower} belongs"
        if whole:
            return DamageKind.FORKED, "its seal does not follow from the one before it: another chain was put here"
    return None if whole else (DamageKind.CHANGED, "its seal was changed")


def _wrong_with_act(seal: Row[Any]) -> tuple[DamageKind, str] | None:
    if not seal.there:
        if seal.excused:
            return None
        if seal.dropped:
            month = f"{seal.audit_created_at:%Y-%m}"
            return DamageKind.DROPPED, f"its month {month} was dropped, and there is no checkpoint of it"
        if seal.by_seq is not None:
            return DamageKind.CHANGED, "its id or its time was changed after it was sealed"
        return DamageKind.MISSING, "it was sealed, and it is gone"
    if not seal.in_place and seal.by_seq is not None and seal.by_seq != seal.audit_id:
        return DamageKind.REORDERED, "it changed places with another act"
    if not seal.in_place:
        return DamageKind.CHANGED, "its number or its transaction was changed after it was sealed"
    if not seal.same_hash:
        return DamageKind.CHANGED, "its hash is not the one that was sealed"
    return DamageKind.CHANGED, "it was changed after it was written: its hash does not fit"


async def inserted_between(
    connection: AsyncConnection, team_id: TeamId, first: Link, last: Link, acts: int, since_seq: int
) -> Damage | None:
    """An act that lies between two sealed ones and has no seal. Counting tells whether it is worth looking, but
    only where acts lie in the order of their seals: those of several other clusters may lie among each other."""
    looks = [{"team_id": team_id, **look} for look in _looks(first, last, since_seq)]
    in_order = since_seq == 0 or first.seq > since_seq
    if in_order and sum([(await connection.execute(BETWEEN, look)).scalar_one() for look in looks]) == acts:
        return None
    for look in looks:
        if (found := (await connection.execute(WITHOUT_SEAL, look)).first()) is not None:
            return inserted(AuditId.of(found.id), found.seq)
    return None


def _looks(first: Link, last: Link, since_seq: int) -> list[dict[str, object]]:
    """Where the acts between the two lie. Those numbered up to `since_seq` were written in another cluster, which
    counted its transactions apart: they come before all others, whatever their transactions are. Of several such
    clusters one may have counted lower than the one before: then nothing lies between the two, and what this look
    leaves out another has, since each begins where the last one ended and the last of them goes on behind all."""
    if since_seq == 0:
        return [_look(first.place, last.place, (LOWEST, LARGEST_NUMBER))]
    of_another, ours = (LOWEST, since_seq), (since_seq + 1, LARGEST_NUMBER)
    before, behind = (of_another if link.seq <= since_seq else ours for link in (first, last))
    if before == behind:
        return [_look(first.place, last.place, before)]
    return [_look(first.place, BEHIND_ALL, before), _look(BEFORE_ALL, last.place, behind)]


def _look(after: tuple[int, int], upto: tuple[int, int], numbers: tuple[int, int]) -> dict[str, object]:
    return {
        "first_xid": str(after[0]),
        "first_seq": after[1],
        "last_xid": str(upto[0]),
        "last_seq": upto[1],
        "low": numbers[0],
        "high": numbers[1],
    }


def inserted(audit_id: AuditId, seq: int) -> Damage:
    message = f"{audit_id}: it lies between sealed acts, but was never sealed: it was put in later"
    return Damage(kind=DamageKind.INSERTED, position=None, audit_id=audit_id, seq=seq, message=message)

"""Proving the trail, a part at a time: what lies between two parts is where the one ended, and its hash."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import text

from agent_console.domain.audit_proof import Damage, DamageKind, Verification, Verified
from agent_console.domain.audit_trail import UNSEALED_MOST
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import AuditId, TeamId
from agent_console.domain.records import LARGEST_NUMBER, Record
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY, PROVE_SECONDS
from agent_console.repository.postgres.audit.anchors import anchors_hold
from agent_console.repository.postgres.audit.damage import damage_after, inserted, inserted_between
from agent_console.repository.postgres.audit.links import GENESIS, LOWEST, Link, Stretch, changed_behind, prove
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# In one statement, so that nothing is sealed between reading the end of the chain and reading its last seal. A
# chain that ends in a transaction still to come was restored just now: all that is sealed was written elsewhere.
HEAD = text("""
    select coalesce(h.position, 0) as position, h.hash, coalesce(h.audit_xid, '0')::text::bigint as xid,
           coalesce(h.audit_seq, 0) as seq,
           case when h.audit_xid >= pg_snapshot_xmax(pg_current_snapshot()) then h.highest_seq
                else coalesce(h.since_seq, 0) end as since_seq,
           (select s.position from audit_seals s
             where s.team_id = :team_id order by s.position desc limit 1) as sealed
      from (select) as always
      left join audit_heads h on h.team_id = :team_id
""")
CUT_OFF = text("""
    select last_position, last_hash from audit_checkpoints
     where team_id = :team_id order by last_position desc, month desc limit 1
""")
ACT_OF = text(
    "select audit_xid::text::bigint as xid, audit_seq from audit_seals where team_id = :team_id and position = :at"
)
FROM_THE_FUTURE = text("""
    select a.id, a.seq from audit_log a
     where a.team_id = :team_id and a.xid >= pg_snapshot_xmax(pg_current_snapshot()) and a.seq > :since_seq
       and cast(:xid as xid8) < pg_snapshot_xmax(pg_current_snapshot())
     order by a.xid, a.seq limit 1
""")


class _End(Record):
    """Where the chain ends, as the database says."""

    position: int
    hash: bytes
    xid: int
    seq: int
    since_seq: int


class _Begun(Record):
    """What a part of the proof starts from, or what is wrong before it has started."""

    team_id: TeamId
    first: Link
    upto: int
    end: _End
    damage: Damage | None


@answers_at_own_pace(AUDIT_VERIFY)
async def verify(repository: "PostgresRepository", asked: Verification) -> Verified:
    begun = await repository.in_one_transaction(AUDIT_VERIFY, _begin, asked)
    if begun.damage is not None:
        return _answer(begun, begun.first, begun.damage)
    database = repository.backend.database
    proving = asyncio.to_thread(prove, database.own_dsn, begun.team_id, begun.first, begun.upto)
    stretch = await database.within_time(proving, PROVE_SECONDS)
    if stretch.broken or stretch.last.position < begun.end.position:
        return await repository.in_one_transaction(AUDIT_VERIFY, partial(_between, begun, stretch), asked)
    behind = asyncio.to_thread(
        changed_behind,
        *(database.own_dsn, begun.team_id, begun.end.xid, begun.end.seq, begun.end.since_seq, UNSEALED_MOST),
    )
    unsealed, changed = await database.within_time(behind, PROVE_SECONDS)
    at_the_end = await repository.in_one_transaction(AUDIT_VERIFY, partial(_at_the_end, begun, stretch), asked)
    if at_the_end.damage is None and changed is not None:
        audit_id, seq = AuditId.of(changed[0]), changed[1]
        message = f"{audit_id}: it was changed after it was written, before it was sealed: its hash does not fit"
        damage = Damage(kind=DamageKind.CHANGED, position=None, audit_id=audit_id, seq=seq, message=message)
        return at_the_end.model_copy(update={"damage": damage})
    return at_the_end.model_copy(update={"unsealed": unsealed})


async def _begin(work: Work, asked: Verification) -> _Begun:
    team_id = work.caller.team_id
    found = (await work.connection.execute(HEAD, {"team_id": team_id})).one()
    end = _End(
        position=found.position,
        hash=found.hash or GENESIS,
        xid=found.xid,
        seq=found.seq,
        since_seq=found.since_seq,
    )
    cut_off = (await work.connection.execute(CUT_OFF, {"team_id": team_id})).first()
    start = Link(0, GENESIS) if cut_off is None else Link(cut_off.last_position, cut_off.last_hash)
    damage = None
    if asked.after is None:
        first = start
        damage = await anchors_hold(work.connection, team_id, asked.seal, end.position, start)
    else:
        first = await _went_on(work, asked.after, start)
    upto = min(first.position + asked.batch_size, end.position)
    return _Begun(team_id=team_id, first=first, upto=upto, end=end, damage=damage)


async def _went_on(work: Work, after: str, start: Link) -> Link:
    position, _, digits = after.partition(".")
    try:
        link = Link(int(position), bytes.fromhex(digits))
    except ValueError as error:
        raise Invalid(
            "`after` is not the `next` of a verification.",
            hint="Begin anew without `after`.",
            details={"field": "after"},
        ) from error
    if link.position == start.position:
        return link
    place = {"team_id": work.caller.team_id, "at": link.position}
    act = (await work.connection.execute(ACT_OF, place)).first()
    if act is None:
        raise Conflict("The place to go on from is no longer in the chain.", hint="Verify from the beginning.")
    return Link(link.position, link.hash, act.xid, act.audit_seq)


async def _between(begun: _Begun, stretch: Stretch, work: Work, asked: Verification) -> Verified:
    if stretch.broken:
        await _require_kept(work, stretch.last)
        damage = await damage_after(work.connection, begun.team_id, stretch.last)
        if damage is None:
            raise Conflict(
                f"Position {stretch.last.position + 1} changed while it was looked at.", hint="Verify again."
            )
        return _answer(begun, stretch.last, damage)
    since = begun.end.since_seq
    damage = await inserted_between(work.connection, begun.team_id, begun.first, stretch.last, stretch.acts, since)
    return _answer(begun, stretch.last, damage)


async def _require_kept(work: Work, last: Link) -> None:
    """Retention may have taken the next links since the proof began: then nothing is wrong with them."""
    cut = (await work.connection.execute(CUT_OFF, {"team_id": work.caller.team_id})).first()
    if cut is not None and cut.last_position > last.position:
        raise Conflict("What lies here was dropped while it was proved.", hint="Verify from the beginning.")


async def _at_the_end(begun: _Begun, stretch: Stretch, work: Work, asked: Verification) -> Verified:
    end, last = begun.end, stretch.last
    if (wrong := await _wrong_end(work, end, last)) is not None:
        damage = Damage(kind=DamageKind.CHANGED, position=last.position, audit_id=None, seq=None, message=wrong)
        return _answer(begun, stretch.last, damage)
    since = end.since_seq
    if end.seq < last.seq <= since:
        # Set back by a move: all that was written elsewhere is sealed, whatever its transaction.
        last = Link(last.position, last.hash, LARGEST_NUMBER, since)
    elif (end.xid, end.seq) > last.place:
        last = Link(last.position, last.hash, end.xid, end.seq)
    found_in = await inserted_between(work.connection, begun.team_id, begun.first, last, stretch.acts, since)
    if found_in is None:
        place = {"team_id": begun.team_id, "since_seq": since or LOWEST, "xid": str(end.xid)}
        if (found := (await work.connection.execute(FROM_THE_FUTURE, place)).first()) is not None:
            found_in = inserted(AuditId.of(found.id), found.seq)
    return _answer(begun, stretch.last, found_in)


async def _wrong_end(work: Work, end: _End, last: Link) -> str | None:
    """The end is kept beside the chain: both have to tell the same."""
    if last.hash != end.hash:
        return f"the chain does not end with the hash that is kept for its end, at position {last.position}"
    now = (await work.connection.execute(HEAD, {"team_id": work.caller.team_id})).one()
    if now.sealed is not None and now.sealed > now.position:
        return f"the chain goes on to position {now.sealed}, but its end is said to be at {now.position}"
    return None


def _answer(begun: _Begun, last: Link, damage: Damage | None) -> Verified:
    left = begun.end.position - last.position
    goes_on = left > 0 and damage is None
    return Verified(
        done=last.position - begun.first.position,
        left=max(left, 0),
        position=last.position,
        hash=last.hash.hex(),
        damage=damage,
        next=f"{last.position}.{last.hash.hex()}" if goes_on else None,
    )

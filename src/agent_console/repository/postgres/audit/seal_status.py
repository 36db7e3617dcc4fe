"""How far the trail is sealed, and the seal at its end."""

from sqlalchemy import text

from agent_console.domain.audit_trail import UNSEALED_MOST, Checkpoint, Seal, SealStatus
from agent_console.domain.records import Nothing
from agent_console.repository.operations.audit_trail import AUDIT_SEAL, AUDIT_SEAL_STATUS
from agent_console.repository.postgres.work import Work, answers

HEAD = text("""
    select coalesce(h.position, 0) as position,
           coalesce(encode(h.hash, 'hex'), repeat('00', 32)) as hash,
           case when h.position > 0 then h.sealed_at end as sealed_at
      from (select) as always
      left join audit_heads h on h.team_id = :team_id
""")
# What lies behind the end of the chain, by audit_log_order_idx.
WAITING = text(f"""
    with head as (select * from audit_heads where team_id = :team_id)
    select count(*) as acts,
           coalesce(extract(epoch from now() - min(w.created_at)), 0)::double precision as seconds,
           now() as at, audit_kept_since() as kept_since
      from (select a.created_at
              from audit_log a
             where a.team_id = :team_id
               and (a.xid, a.seq) > (coalesce((select audit_xid from head), '0'),
                                     coalesce((select audit_seq from head), 0))
               and a.seq > coalesce((select since_seq from head), 0)
             order by a.xid, a.seq
             limit {UNSEALED_MOST}) as w
""")  # noqa: S608
MONTHS = text("""
    select replace(right(c.relname, 7), '_', '-') as month
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'audit_log'::regclass
     order by c.relname
""")
CHECKPOINTS = text("""
    select to_char(month, 'YYYY-MM') as month, first_position, last_position,
           encode(last_hash, 'hex') as last_hash, rows, created_at
      from audit_checkpoints
     where team_id = :team_id
     order by audit_checkpoints.month
""")


@answers(AUDIT_SEAL)
async def show_seal(work: Work, asked: Nothing) -> Seal:
    head = (await work.connection.execute(HEAD, {"team_id": work.caller.team_id})).mappings().one()
    return Seal.model_validate({"team_id": work.caller.team_id, "team": work.caller.team} | dict(head))


@answers(AUDIT_SEAL_STATUS)
async def show_status(work: Work, asked: Nothing) -> SealStatus:
    seal = await show_seal(work, asked)
    team = {"team_id": work.caller.team_id}
    waiting = (await work.connection.execute(WAITING, team)).one()
    months = (await work.connection.execute(MONTHS)).scalars().all()
    checkpoints = (await work.connection.execute(CHECKPOINTS, team)).mappings().all()
    return SealStatus(
        **dict(seal),
        unsealed=waiting.acts,
        lag_seconds=waiting.seconds,
        at=waiting.at,
        months=tuple(months),
        kept_since=waiting.kept_since,
        checkpoints=tuple(Checkpoint.model_validate(dict(checkpoint)) for checkpoint in checkpoints),
    )

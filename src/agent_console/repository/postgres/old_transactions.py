"""How long somebody has kept a transaction open: while it lasts, nothing that was claimed can be cleaned away."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# When another role's transaction began is only told to members of pg_read_all_stats; that it holds a snapshot, and
# how many transactions ago that was taken, is told to everybody. Autovacuum's own are no trouble.
OLDEST = text("""
    select extract(epoch from clock_timestamp() - least(min(s.xact_start),
               (select min(p.prepared) from pg_prepared_xacts p where p.database = current_database())))
               ::double precision as seconds,
           count(*) filter (where s.xact_start is null and s.backend_xmin is not null) as hidden,
           coalesce(max(age(s.backend_xmin)), 0) as transactions
      from pg_stat_activity s
     where s.datname = current_database()
       and s.pid <> pg_backend_pid()
       and s.backend_type is distinct from 'autovacuum worker'
""")


@dataclass(frozen=True)
class OldestTransaction:
    """`seconds` is None when none is open that we may see; `hidden` ones hold a snapshot of unknown age."""

    seconds: float | None
    hidden: int
    transactions: int


async def oldest_transaction(connection: AsyncConnection) -> OldestTransaction:
    row = (await connection.execute(OLDEST)).one()
    return OldestTransaction(row.seconds, row.hidden, row.transactions)

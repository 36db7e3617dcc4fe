"""What the database does for a question, counted and not timed: which statements, and what each looked at.

A clock would tell the same in the end, after thousands of questions and on a quiet machine. Who looks at one row
more for one id than for another can be told apart by whoever has the time; here it shows at once, and every time.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from agent_console.repository.postgres.database import NEXT_MONTH
from agent_console.repository.postgres.identify import SEEN
from agent_console.repository.postgres.live.changes import NOTIFY
from agent_console.repository.postgres.queue.lane_book import LANES
from agent_console.repository.postgres.queue.queue import TEND
from agent_console.repository.postgres.schema_watch import STANDING

# Counted by the session itself as it goes, and exact within a transaction; for each table, through whichever of
# its indexes. The entries of an index are not counted, since those of rows that are gone may be among them or not;
# the rows that it leads to are.
LOOKED_AT = """
    select coalesce(i.indrelid, c.oid)::regclass::text, sum(pg_stat_get_xact_numscans(c.oid))::int,
           sum(case when c.relkind = 'r' then pg_stat_get_xact_tuples_returned(c.oid) else 0 end)::int,
           sum(pg_stat_get_xact_tuples_fetched(c.oid))::int, sum(pg_stat_get_xact_tuples_inserted(c.oid))::int,
           sum(pg_stat_get_xact_tuples_updated(c.oid))::int, sum(pg_stat_get_xact_tuples_deleted(c.oid))::int
      from pg_class c
      left join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'i')
     group by 1
"""
COUNTED = ("scans", "read", "fetched", "inserted", "updated", "deleted")
WORKING = ("select", "insert", "update", "delete", "with")


def _beginning(statement: object) -> str:
    """Its words up to the first value."""
    words = " ".join(str(statement).split())
    return re.split(r" :\w|\(:\w|%\(", words)[0]


# What is done when it is time for it, whatever is asked about: a look at the schema and the lanes, "was here just
# now", and the notices of what was done before.
BY_THE_CLOCK = tuple(map(_beginning, (LANES, NEXT_MONTH, NOTIFY, SEEN, STANDING, TEND)))

Looks = Counter[tuple[str, str]]
Statement = tuple[str, int | str, tuple[tuple[tuple[str, str], int], ...]]
"""Its words, how many rows it brought or how it failed, and how much of each table was looked at."""


class CountedWork:
    """All statements of this process, as long as somebody listens."""

    def __init__(self) -> None:
        self.heard: list[Statement] | None = None

    @contextmanager
    def counting(self, heard: list[Statement]) -> Iterator[None]:
        self.heard = heard
        yield
        self.heard = None

    async def run(self, cursor: AsyncCursor[Any], execute: Any, query: Any, *args: Any, **named: Any) -> Any:
        heard, words = self.heard, " ".join(str(query).split())
        if heard is None or not words.lower().startswith(WORKING) or words.startswith(BY_THE_CLOCK):
            return await execute(cursor, query, *args, **named)
        connection = cursor.connection
        alone = connection.info.transaction_status is TransactionStatus.IDLE and connection.autocommit
        own = connection.cursor(row_factory=tuple_row)
        if alone:
            await execute(own, "begin")
        try:
            before = await self._looks(connection, execute)
            ran = await execute(cursor, query, *args, **named)
            looks = await self._looks(connection, execute)
        except psycopg.Error as refused:
            heard.append((words, str(refused.sqlstate), ()))
            if alone:
                await execute(own, "rollback")
            raise
        if alone:
            await execute(own, "commit")
        looks.subtract(before)
        heard.append(
            (words, cursor.rowcount, tuple(sorted((what, count) for what, count in looks.items() if count)))
        )
        return ran

    async def _looks(self, connection: AsyncConnection[Any], execute: Any) -> Looks:
        rows = await (await execute(connection.cursor(row_factory=tuple_row), LOOKED_AT)).fetchall()
        return Counter(
            {(name, what): count for name, *counts in rows for what, count in zip(COUNTED, counts, strict=True)}
        )


@contextmanager
def counted_work() -> Iterator[CountedWork]:
    work, execute = CountedWork(), AsyncCursor.execute

    async def counted(cursor: AsyncCursor[Any], query: Any, *args: Any, **named: Any) -> Any:
        return await work.run(cursor, execute, query, *args, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AsyncCursor, "execute", counted)
        yield work

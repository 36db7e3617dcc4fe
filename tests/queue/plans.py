"""A crowded queue, and what a statement reads of it: rows, entries of an index, and never a whole table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg
from psycopg.rows import DictRow, dict_row

from agent_console.repository.postgres.queue.connections import PLANNED_ONCE
from tests.queue.crew import EMPTY
from tests.queue.more_agents import AddedAgent, crowd
from tests.support.fleet import Fleet

QUEUED = ENDED = 20_000
LANES = 100
AGENTS = 300
FITTING = 5

# The last lanes ask for nothing; each of the others asks for a capability of its own.
FILL_LANES = """
    insert into lanes (team_id, id, key, job_type, required_capabilities)
    select %(team)s, new_id(), lpad(n::text, 64, '0'), 'work',
           case when n > %(lanes)s - %(fitting)s then '[]' else jsonb_build_array('skill ' || n) end
      from generate_series(1, %(lanes)s) as n
"""
FILL_JOBS = """
    insert into jobs (team_id, id, lane_id, type, priority, payload, status, finished_at)
    select l.team_id, new_id(), l.id, 'work', g.n %% 5, '{}', %(status)s, %(finished)s
      from generate_series(1, %(jobs)s) as g (n)
      join lanes l on l.key = lpad((1 + g.n %% %(lanes)s)::text, 64, '0')
"""
FILL_EVENTS = """
    insert into job_events (team_id, id, job_id, message, payload)
    select team_id, new_id(), id, 'created as queued', '{"to": "queued"}' from jobs
"""
TABLES = "'jobs', 'job_events', 'job_results', 'agents', 'agent_runtime', 'lanes', 'queue_moves'"
# What this session has read and not yet reported, and so a count that only grows within a transaction.
READ = f"""
    select c.relname as name, pg_stat_get_xact_numscans(c.oid) as scans,
           pg_stat_get_xact_tuples_returned(c.oid) as returned, pg_stat_get_xact_tuples_fetched(c.oid) as fetched
      from pg_class c left join pg_index i on i.indexrelid = c.oid
     where c.relname in ({TABLES})
        or i.indrelid in (select oid from pg_class where relname in ({TABLES}))
"""


@dataclass(frozen=True)
class Reads:
    """Of one statement, by name of table or index."""

    whole: dict[str, int] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def fill(fleet: Fleet) -> list[AddedAgent]:
    fleet.execute(EMPTY)
    facts = {"team": fleet.team_id(), "lanes": LANES, "fitting": FITTING}
    with psycopg.connect(fleet.administration) as connection:
        connection.execute(FILL_LANES, facts)
        for status, finished, jobs in (("queued", None, QUEUED), ("succeeded", "2026-01-01", ENDED)):
            wanted = facts | {"status": status, "finished": finished, "jobs": jobs}
            connection.execute(FILL_JOBS, wanted)
        connection.execute(FILL_EVENTS)
    agents = crowd(fleet, AGENTS, room=50)
    fleet.execute("truncate queue_moves")
    fleet.execute("vacuum analyze")
    return agents


class Measured:
    """One session like those of the queue; what it does is undone."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, options=PLANNED_ONCE, row_factory=dict_row)

    def do(self, statement: str, facts: Mapping[str, object] | None = None) -> list[DictRow]:
        cursor = self.connection.execute(statement.encode(), facts)
        return cursor.fetchall() if cursor.description else []

    def reads(self, statement: str, facts: Mapping[str, object]) -> tuple[list[DictRow], Reads]:
        before = {row["name"]: row for row in self.do(READ)}
        found = self.do(statement, facts)
        reads = Reads()
        for row in self.do(READ):
            was = before[row["name"]]
            scans, returned, fetched = (row[name] - was[name] for name in ("scans", "returned", "fetched"))
            if row["name"] in TABLES.replace("'", "").split(", "):
                reads.whole[row["name"]] = scans
                reads.rows[row["name"]] = returned + fetched
            else:
                reads.entries[row["name"]] = returned
        return found, reads

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()

"""What a large fleet costs those who only look: as much as a small one, or this ends with exit code 1.

    python -m bench.fleet_size

A page of agents, the badge, and a round of the duty that notices silence, with nobody silent and with ten, in a
fleet of 100 and in one of 100,000, in turns, on the embedded PostgreSQL as users get it. Told twice: the time the
server needs for the statements (EXPLAIN ANALYZE, planning left out) and the time until the answer is there.

Shown beside it, with no limit: the first round after every agent was heard in a new minute and nobody has cleaned
up after them. A fleet does that once a minute, spread over twenty rounds; the round that comes first pays, which
is the one that is waited for here.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql
from sqlalchemy import Engine, event
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.agents import AgentQuery
from agent_console.domain.ids import AgentId, TeamId, UserId
from agent_console.domain.records import Nothing
from agent_console.repository.operations import AGENTS_LIST, POOL_STATUS
from agent_console.repository.postgres.duties.silence import NOTICE_SILENCE
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository

SMALL, LARGE = 100, 100_000
TEAM = "fleet"
TIMES = 25
GROWTH_LIMIT = 3.0

FILL = """
    with ids as materialized (
        select n, overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid as user_id,
               overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid as agent_id
          from generate_series(1, %(count)s) as n
    ), people as (
        insert into users (team_id, id, kind, full_name)
        select %(team)s, user_id, 'system', 'Agent: ' || n from ids
    ), made as (
        insert into agents (team_id, id, name, owner_user_id, system_user_id, created_by_user_id, worker_id,
                            api_key_hash, api_key_prefix)
        select %(team)s, agent_id, 'agent-' || n, %(owner)s, user_id, %(owner)s, 'worker-' || n,
               encode(sha256(agent_id::text::bytea), 'hex'), 'agt_key_'
          from ids
        returning id
    )
    select id from made
"""
RUNTIME = """
    insert into agent_runtime (team_id, agent_id, presence, last_heartbeat_at, capabilities)
    select team_id, id, 'online', now(), '["tool:report:2.1.0"]' from agents where team_id = %s
"""
ALL_HEARD = "update agent_runtime set presence = 'online', last_heartbeat_at = now()"
TEN_SILENT = """
    update agent_runtime
       set presence = 'online', last_heartbeat_at = now() - interval '91 seconds'
     where agent_id in (select agent_id from agent_runtime order by agent_id limit 10)
"""


def add_team(dsn: str, slug: str, count: int) -> tuple[TeamId, list[AgentId]]:
    """A team of this many agents, all online."""
    team_id, owner = TeamId.new(), UserId.new()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("insert into teams (id, slug, name) values (%s, %s, %s)", (team_id, slug, slug))
        connection.execute(
            "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, 'admin')",
            (team_id, owner, f"admin@{slug}.example", slug),
        )
        rows = connection.execute(FILL, {"team": team_id, "owner": owner, "count": count}).fetchall()
        began = time.perf_counter()
        connection.execute(RUNTIME, (team_id,))
        print(f"{count:>9,} agents came in with one statement: {time.perf_counter() - began:.1f} s")
        connection.execute("vacuum analyze")
    return team_id, [AgentId.of(row[0]) for row in rows]


@dataclass(frozen=True)
class Fleet:
    """A fleet in a database of its own, and what is asked of it."""

    size: int
    administration: psycopg.Connection[tuple[object, ...]]
    backend: Backend
    asked: dict[str, Callable[[], Awaitable[object]]] = field(default_factory=dict)

    def prepare(self, name: str) -> None:
        """Everybody is heard, but for those whom the question is about. Vacuumed, as autovacuum does."""
        self.administration.execute("update agent_runtime set last_heartbeat_at = now() - interval '70 seconds'")
        self.administration.execute(ALL_HEARD)
        if name != MOVED_ON:
            self.administration.execute("vacuum analyze agent_runtime")

    def before_each(self, name: str) -> None:
        if name == TEN:
            self.administration.execute(TEN_SILENT)


PAGE, BADGE, NOBODY, TEN = "agents.list", "pool.status", "sweep, nobody silent", "sweep, ten silent"
MOVED_ON = "sweep, all moved on"
QUESTIONS = (PAGE, BADGE, NOBODY, TEN)


@contextmanager
def statements() -> Iterator[list[tuple[str, object]]]:
    """What is sent to the database meanwhile."""
    sent: list[tuple[str, object]] = []

    def keep(_connection: object, _cursor: object, statement: str, given: object, *_: object) -> None:
        sent.append((statement, given))

    event.listen(Engine, "before_cursor_execute", keep)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", keep)


def server_milliseconds(fleet: Fleet, sent: list[tuple[str, object]]) -> float:
    """The same statements again, in a transaction that is taken back."""
    spent = 0.0
    with fleet.administration.transaction(force_rollback=True):
        for statement, given in sent:
            assert isinstance(given, dict)
            question = b"explain (analyze, timing off, format json) " + statement.encode()
            ((told,),) = fleet.administration.execute(question, given).fetchall()
            assert isinstance(told, list)
            spent += float(told[0]["Execution Time"])
    return spent


async def once(fleet: Fleet, name: str) -> tuple[float, float]:
    """Milliseconds of the server alone, and until the answer was there."""
    fleet.before_each(name)
    began = time.perf_counter()
    with statements() as sent:
        await fleet.asked[name]()
    waited = 1000 * (time.perf_counter() - began)
    fleet.before_each(name)
    return server_milliseconds(fleet, sent), waited


async def compare(small: Fleet, large: Fleet, name: str, times: int = TIMES) -> tuple[float, float]:
    """The growth of both times, measured in turns."""
    for fleet in (small, large):
        fleet.prepare(name)
        if times > 1:
            await fleet.asked[name]()
    taken: dict[int, list[tuple[float, float]]] = {SMALL: [], LARGE: []}
    for _ in range(times):
        for fleet in (small, large):
            taken[fleet.size].append(await once(fleet, name))
    few, many = (
        [statistics.median(one[part] for one in taken[size]) for part in (0, 1)] for size in (SMALL, LARGE)
    )
    growth = (many[0] / few[0], many[1] / few[1])
    told = (f"{few[part]:>9.2f}{many[part]:>9.2f}{growth[part]:>8.2f}" for part in (0, 1))
    print(f"{name:<22}{'   '.join(told)}")
    return growth


@contextmanager
def fleet_of(size: int, administration: str) -> Iterator[Fleet]:
    database = f"fleet_{size}"
    with psycopg.connect(administration, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(database)))
    dsn = psycopg.conninfo.make_conninfo(administration, dbname=database)
    migrate(dsn)
    add_team(dsn, TEAM, size)
    backend = Backend(with_role(dsn, APP))
    repository = PostgresRepository(backend, by_name(TEAM, None))
    with psycopg.connect(dsn, autocommit=True) as connection:
        fleet = Fleet(size, connection, backend)
        fleet.asked[PAGE] = lambda: repository.call(AGENTS_LIST, AgentQuery())
        fleet.asked[BADGE] = lambda: repository.call(POOL_STATUS, Nothing())
        for name in (NOBODY, TEN, MOVED_ON):
            fleet.asked[name] = lambda: NOTICE_SILENCE.round(backend)
        yield fleet


async def measure(small: Fleet, large: Fleet) -> bool:
    began = time.perf_counter()
    large.administration.execute("update agent_runtime set presence = 'offline'")
    print(f"{LARGE:>9,} agents went with one statement: {time.perf_counter() - began:.1f} s\n")

    print(f"{'ms':<22}{'server':>9}{'':>9}{'growth':>8}   {'waited':>9}{'':>9}{'growth':>8}")
    print(f"{'':<22}{SMALL:>9,}{LARGE:>9,}{'':>8}   {SMALL:>9,}{LARGE:>9,}")
    growths = [await compare(small, large, name) for name in QUESTIONS]
    print()
    await compare(small, large, MOVED_ON, times=1)
    for fleet in (small, large):
        await fleet.backend.close()
    return max(max(growth) for growth in growths) <= GROWTH_LIMIT


def main() -> int:
    with (
        reachable_folder(in_memory=False) as folder,
        embedded_postgres(folder / "data") as server,
        fleet_of(SMALL, server.dsn()) as small,
        fleet_of(LARGE, server.dsn()) as large,
    ):
        return 0 if asyncio.run(measure(small, large)) else 1


if __name__ == "__main__":
    sys.exit(main())

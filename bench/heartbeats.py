"""How many heartbeats a process takes: at least 0.6 of the plainest way to keep them, or exit code 1.

    python -m bench.heartbeats

Sustained heartbeats through one repository, by 32 and by 128 agents at once, beside one-row UPDATEs by primary key
from the same process, in turns, on the embedded PostgreSQL as users get it, in a fleet of 100,000. Every agent was
last heard 30 s before, as in life, so that half of the beats fall into a new minute and move in its index. The
one-row UPDATEs go to a twin of the table that has a primary key and nothing else: no trigger, no further index.
"""

import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg
from bench.fleet_size import LARGE, add_team
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import AgentId, TeamId
from agent_console.domain.presence import HEARTBEAT_SECONDS, Heartbeat
from agent_console.domain.secrets import Secret
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository

CALLERS = (32, 128)
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
TURNS = 3
BEATING = 30_000
CONNECTIONS = 32
RATIO_LIMIT = 0.6

BEAT = Heartbeat(metrics={"cpu": 0.3, "memory": 0.5, "disk": 0.7})
TWIN = """
    create table twin (like agent_runtime including defaults) with (fillfactor = 70);
    insert into twin select * from agent_runtime;
    alter table twin add primary key (team_id, agent_id);
    vacuum analyze twin
"""
ONE_ROW = "update twin set last_heartbeat_at = now() where team_id = %s and agent_id = %s"
KEYS = """
    update agents a set api_key_hash = k.hash
      from unnest(%s::uuid[], %s::text[]) as k (id, hash)
     where a.team_id = %s and a.id = k.id
"""
HEARD_BEFORE = "update agent_runtime set last_heartbeat_at = now() - %s * interval '1 second'"
IN_PAGE = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'agent_runtime'"

Connection = psycopg.AsyncConnection[tuple[object, ...]]


async def rate(one: Callable[[int], Awaitable[object]], callers: int) -> float:
    """Calls per second with this many callers, each waiting for its answer before it calls again."""
    until = time.perf_counter() + SECONDS
    numbers = itertools.count()

    async def calling() -> int:
        done = 0
        while time.perf_counter() < until:
            await one(next(numbers) % BEATING)
            done += 1
        return done

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(calling() for _ in range(callers))))
    return done / (time.perf_counter() - began)


@dataclass(frozen=True)
class Fleet:
    """Those who beat, one after the other, each with its own key."""

    dsn: str
    team_id: TeamId
    agents: list[AgentId]
    keys: list[Secret]

    def heard_before(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(HEARD_BEFORE, (HEARTBEAT_SECONDS,))
            connection.execute("vacuum analyze agent_runtime")

    def written(self) -> tuple[int, int]:
        """Beats so far, and how many of them stayed within their page."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            ((beats, in_page),) = connection.execute(IN_PAGE).fetchall()
        return int(beats), int(in_page)


def settle(dsn: str) -> Fleet:
    team_id, agents = add_team(dsn, "large", LARGE)
    beating = agents[:BEATING]
    keys = [Secret.mint(team_id, agent) for agent in beating]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(KEYS, (beating, [key.hash for key in keys], team_id))
        for statement in TWIN.split(";"):
            connection.execute(statement.encode())
        connection.execute("vacuum analyze agents")
    return Fleet(dsn, team_id, beating, keys)


async def beats_per_second(fleet: Fleet, backend: Backend, callers: int) -> tuple[float, float]:
    """And the share of them that stayed within their page."""
    repositories = [PostgresRepository(backend, by_token(key)) for key in fleet.keys]
    fleet.heard_before()
    beats, in_page = fleet.written()

    rated = await rate(lambda number: repositories[number].call(HEARTBEAT_SEND, BEAT), callers)

    # A session tells what it has counted at most once a second.
    await asyncio.sleep(2)
    beats, in_page = fleet.written()[0] - beats, fleet.written()[1] - in_page
    return rated, in_page / max(1, beats)


async def rows_per_second(fleet: Fleet, free: "asyncio.LifoQueue[Connection]", callers: int) -> float:
    async def one_row(number: int) -> None:
        connection = await free.get()
        await connection.execute(ONE_ROW, (fleet.team_id, fleet.agents[number]))
        free.put_nowait(connection)

    return await rate(one_row, callers)


async def heartbeat_ratio(fleet: Fleet, callers: int) -> float:
    backend = Backend(with_role(fleet.dsn, APP), pool_size=8)
    connections: list[Connection] = [
        await psycopg.AsyncConnection.connect(fleet.dsn, autocommit=True) for _ in range(min(callers, CONNECTIONS))
    ]
    free: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
    for connection in connections:
        free.put_nowait(connection)
    beats, rows = [], []
    for _ in range(TURNS):
        beats.append(await beats_per_second(fleet, backend, callers))
        rows.append(await rows_per_second(fleet, free, callers))
    for connection in connections:
        await connection.close()
    await backend.close()
    beating, in_page = (statistics.median(one[part] for one in beats) for part in (0, 1))
    ratio = beating / statistics.median(rows)
    print(
        f"{callers:>4} agents: {beating:>7,.0f} heartbeats/s ({in_page:.0%} within their page),"
        f" {statistics.median(rows):>7,.0f} one-row UPDATEs/s, ratio {ratio:.2f}"
    )
    return ratio


async def measure(dsn: str) -> bool:
    fleet = settle(dsn)
    return min([await heartbeat_ratio(fleet, callers) for callers in CALLERS]) >= RATIO_LIMIT


def main() -> int:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        migrate(server.dsn())
        return 0 if asyncio.run(measure(server.dsn())) else 1


if __name__ == "__main__":
    sys.exit(main())

"""How many heartbeats a process takes, and what a large fleet costs those who only look.

    python bench/heartbeats.py

Sustained heartbeats through one repository, by 32 and by 128 agents at once, beside one-row UPDATEs by primary
key from the same process, in turns, on the embedded PostgreSQL as users get it. Then a page of agents, the
badge, a round of the duties and a sweep that finds somebody, in a fleet of 100 and in one of 100,000. Ends
with exit code 1 when a ratio is worse than its limit.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from uuid import UUID

import psycopg
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.agents import AgentQuery
from agent_console.domain.ids import AgentId, TeamId, UserId
from agent_console.domain.presence import Heartbeat
from agent_console.domain.records import Nothing
from agent_console.domain.secrets import Secret
from agent_console.repository.operations import AGENTS_LIST, POOL_STATUS
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.postgres.duties import LOOKED_AT_PER_SECOND, Duties
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository

SMALL, LARGE = 100, 100_000
CALLERS = (32, 128)
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
TURNS = 3
LOOKS = 30
RATIO_LIMIT = 0.6
GROWTH_LIMIT = 3.0

BEAT = Heartbeat(metrics={"cpu": 0.3, "memory": 0.5, "disk": 0.7})
ONE_ROW = "update agent_runtime set last_heartbeat_at = now() where team_id = %s and agent_id = %s"

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


def add_team(dsn: str, slug: str, count: int) -> tuple[TeamId, list[AgentId]]:
    team_id, owner = TeamId.new(), UserId.new()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("insert into teams (id, slug, name) values (%s, %s, %s)", (team_id, slug, slug))
        connection.execute(
            "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, 'admin')",
            (team_id, owner, f"admin@{slug}.example", slug),
        )
        rows = connection.execute(FILL, {"team": team_id, "owner": owner, "count": count}).fetchall()
        connection.execute(RUNTIME, (team_id,))
        connection.execute("vacuum analyze")
    return team_id, [AgentId.of(row[0]) for row in rows]


async def rate(one: Callable[[int], Awaitable[object]], callers: int) -> float:
    """Calls per second with this many callers, each waiting for its answer before it calls again."""
    until = time.perf_counter() + SECONDS

    async def calling(number: int) -> int:
        done = 0
        while time.perf_counter() < until:
            await one(number)
            done += 1
        return done

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(calling(number) for number in range(callers))))
    return done / (time.perf_counter() - began)


async def heartbeat_ratio(dsn: str, team_id: TeamId, agents: list[AgentId], callers: int) -> float:
    keys = [Secret.mint(team_id, agent) for agent in agents[:callers]]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for key in keys:
            connection.execute("update agents set api_key_hash = %s where id = %s", (key.hash, key.owner))
    backend = Backend(with_role(dsn, APP), pool_size=8)
    repositories = [PostgresRepository(backend, by_token(key)) for key in keys]
    connections = [await psycopg.AsyncConnection.connect(dsn, autocommit=True) for _ in range(min(callers, 32))]
    free: asyncio.LifoQueue[psycopg.AsyncConnection[tuple[object, ...]]] = asyncio.LifoQueue()
    for connection_ in connections:
        free.put_nowait(connection_)

    async def beat(number: int) -> None:
        await repositories[number].call(HEARTBEAT_SEND, BEAT)

    async def one_row(number: int) -> None:
        connection = await free.get()
        await connection.execute(ONE_ROW, (team_id, agents[number]))
        free.put_nowait(connection)

    beats, rows = [], []
    for _ in range(TURNS):
        beats.append(await rate(beat, callers))
        rows.append(await rate(one_row, callers))
    for connection_ in connections:
        await connection_.close()
    await backend.close()
    ratio = statistics.median(beats) / statistics.median(rows)
    print(
        f"{callers:>4} agents: {statistics.median(beats):>7,.0f} heartbeats/s,"
        f" {statistics.median(rows):>7,.0f} one-row UPDATEs/s, ratio {ratio:.2f}"
    )
    return ratio


async def milliseconds(one: Callable[[], Awaitable[object]]) -> float:
    taken = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await one()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


async def costs(dsn: str, slug: str, agents: list[AgentId]) -> dict[str, float]:
    """Milliseconds of what is asked often."""
    backend = Backend(with_role(dsn, APP))
    repository = PostgresRepository(backend, by_name(slug, None))
    duties = Duties(backend)

    async def swept() -> None:
        """A round that finds one silent agent, at the moment it is due."""
        duties.look_at = 0.0
        await duties.round()

    silent = "update agent_runtime set presence = 'online', last_heartbeat_at = now() - interval '91 seconds'"
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = {
            "page": await milliseconds(lambda: repository.call(AGENTS_LIST, AgentQuery())),
            "badge": await milliseconds(lambda: repository.call(POOL_STATUS, Nothing())),
            "look": await milliseconds(duties.look),
            "tick": await milliseconds(duties.round),
        }
        taken = []
        for agent in agents[:10]:
            connection.execute(f"{silent} where agent_id = %s", (UUID(int=agent.int),))
            began = time.perf_counter()
            await swept()
            taken.append(1000 * (time.perf_counter() - began))
        found["sweep"] = statistics.median(taken)
    await backend.close()
    return found


async def measure(dsn: str) -> bool:
    _, few = add_team(dsn, "small", SMALL)
    small = await costs(dsn, "small", few)
    team_id, many = add_team(dsn, "large", LARGE)
    ratios = [await heartbeat_ratio(dsn, team_id, many, callers) for callers in CALLERS]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update agent_runtime set last_heartbeat_at = now()")
        connection.execute("vacuum analyze agent_runtime")
    large = await costs(dsn, "large", many)

    print(f"\n{'ms':<8}{SMALL:>10,}{LARGE:>10,}   growth")
    for name, cost in small.items():
        print(f"{name:<8}{cost:>10.2f}{large[name]:>10.2f}{large[name] / cost:>9.2f}")
    share = large["look"] / 1000 / (LARGE / LOOKED_AT_PER_SECOND)
    print(
        f"A look at {LARGE:,} living agents every {LARGE / LOOKED_AT_PER_SECOND:.0f} s: {share:.2%} of the time."
    )
    flat = all(large[name] <= GROWTH_LIMIT * small[name] for name in ("page", "badge", "tick"))
    return flat and min(ratios) >= RATIO_LIMIT


def main() -> int:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        migrate(server.dsn())
        return 0 if asyncio.run(measure(server.dsn())) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the audit trail costs and holds. Exit code 1 when fewer than 100,000 acts are proved or fewer than 10,000
are sealed in a second, or when a follower misses one.

    python -m bench.audit

A trail of a million acts (BENCH_ACTS) is sealed as the duty seals it, and proved as `agent-console audit verify`
proves it. Then 200 writers commit 50,000 acts, each in a transaction that stays open for a while after it took its
number, while acts are sealed and one reader follows.
"""

import asyncio
import os
import random
import sys
import time

import psycopg
from bench.fleet_size import add_team
from tests.support.clusters import cluster, reachable_folder

from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.audit_proof import Verification
from agent_console.domain.audit_trail import LIMIT_MAX, AuditTail
from agent_console.domain.ids import TeamId
from agent_console.repository.operations.audit_trail import AUDIT_TAIL, AUDIT_VERIFY
from agent_console.repository.port import Repository
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS, seal_acts
from agent_console.repository.postgres.repository import Backend, open_direct

ACTS = int(os.environ.get("BENCH_ACTS", "1000000"))
AT_ONCE = 20_000
WRITERS, LATE_ACTS = 200, 50_000
HELD_SECONDS = 0.2
PROVED_LEAST, SEALED_LEAST = 100_000, 10_000

# What is said, and what agents begin to do about it, with the metadata that such acts have.
FILL = """
    insert into audit_log (team_id, id, actor_type, actor_user_id, actor_label, action, resource_type, resource_id,
                           thread_id, ip, user_agent, metadata, event_hash, created_at)
    select team, id, 'human', who, 'Ana Costa', 'message.create', 'message', 'msg_01h455vb4pex5vsknk084sn02q', who,
           '10.0.0.1', 'agent-console/0.1.0', facts,
           audit_event_hash(1::smallint, team, id, now(), 'human', who, null, 'Ana Costa', 'message.create',
                            'message', 'msg_01h455vb4pex5vsknk084sn02q', who, null, null, null, '10.0.0.1',
                            'agent-console/0.1.0', facts),
           now()
      from (select %s::uuid as team, new_id() as id, gen_random_uuid() as who,
                   case when n %% 3 < 2 then jsonb_build_object('recipients', n %% 4, 'broadcast', n %% 7 = 0,
                                                                'intervention', false)
                        else jsonb_build_object('job_id', gen_random_uuid(), 'attempt', 1) end as facts
              from generate_series(1, %s) as n) as acts
"""
LATE = "select append_audit(%s, 'system', null, null, 'bench', 'job.create', 'job', %s)"


def fill(dsn: str, team_id: TeamId) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(0, ACTS, AT_ONCE):
            connection.execute(FILL, (team_id, AT_ONCE))
        connection.execute("vacuum analyze audit_log")


async def sealed(backend: Backend, wanted: int) -> float:
    """Acts sealed in a second, round after round as the duty does it."""
    began, done = time.perf_counter(), 0
    while done < wanted:
        done += await seal_acts(backend) or 0
    return done / (time.perf_counter() - began)


async def proved(repository: Repository) -> float:
    began, done, asked = time.perf_counter(), 0, Verification()
    while True:
        part = await repository.call(AUDIT_VERIFY, asked)
        done += part.done
        if part.damage is not None:
            raise SystemExit(f"damaged: {part.damage.message}")
        if part.next is None:
            return done / (time.perf_counter() - began)
        asked = asked.model_copy(update={"after": part.next})


async def write_late(dsn: str, team_id: TeamId, numbers: range) -> None:
    """One act in each transaction; some end at once, some long after others that began later."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        for number in numbers:
            await connection.execute(LATE, (team_id, f"job_{number}"))
            await asyncio.sleep(random.random() ** 4 * HELD_SECONDS)
            await connection.commit()


async def follow(repository: Repository, after: int, wanted: int) -> list[str]:
    """What a follower is given, until it has as many as were written or nothing comes any more."""
    seen: list[str] = []
    asked = AuditTail(after_position=after, limit=LIMIT_MAX, wait_seconds=5.0)
    while len(seen) < wanted:
        page = await repository.call(AUDIT_TAIL, asked)
        if not page.items:
            break
        seen += [row.resource_id for row in page.items]
        asked = asked.model_copy(update={"after_position": page.position})
    return seen


async def missed(dsn: str, backend: Backend, repository: Repository, team_id: TeamId) -> tuple[int, int]:
    """How many acts a follower never saw, and how many it saw twice."""
    head = (await repository.call(AUDIT_TAIL, AuditTail(limit=1))).head
    each = LATE_ACTS // WRITERS
    writing = [write_late(dsn, team_id, range(n * each, (n + 1) * each)) for n in range(WRITERS)]
    sealing = asyncio.create_task(seal_forever(backend))
    following = asyncio.create_task(follow(repository, head, LATE_ACTS))
    await asyncio.gather(*writing)
    seen = await following
    sealing.cancel()
    return LATE_ACTS - len(set(seen)), len(seen) - len(set(seen))


async def seal_forever(backend: Backend) -> None:
    while True:
        await seal_acts(backend)
        await asyncio.sleep(SEAL_ACTS.every_seconds)


async def measure(administration: str) -> bool:
    team_id, _ = add_team(administration, "trail", 1)
    working = with_role(administration, APP)
    await asyncio.to_thread(fill, administration, team_id)
    backend = Backend(working)
    async with open_direct(working) as repository:
        seals = await sealed(backend, ACTS)
        with psycopg.connect(administration, autocommit=True) as connection:
            connection.execute("vacuum analyze audit_seals")
        proofs = max([await proved(repository) for _ in range(3)])
        lost, twice = await missed(administration, backend, repository, team_id)
    await backend.close()
    print(f"sealed  {seals:>10,.0f} acts/s (at least {SEALED_LEAST:,})")
    print(f"proved  {proofs:>10,.0f} acts/s of {ACTS:,} (at least {PROVED_LEAST:,})")
    print(f"missed  {lost:>10,} of {LATE_ACTS:,} by {WRITERS} late writers, {twice} twice")
    return seals >= SEALED_LEAST and proofs >= PROVED_LEAST and lost == twice == 0


def main() -> int:
    with reachable_folder(in_memory=False) as folder, cluster(18, folder) as server:
        migrate(server.dsn())
        return 0 if asyncio.run(measure(server.dsn())) else 1


if __name__ == "__main__":
    sys.exit(main())

"""How fast the server is, as ratios measured in one run; beyond the limits, exit code 1.

    python -m bench.http

A page of 50 messages through the server, credentials and rights included, beside a plain FastAPI route that reads
the same rows and builds pydantic models: at least 1.6 times as many. Claim and complete by 32 agents over HTTP
beside the same agents on PostgreSQL directly: at least 0.4. An event from its commit to 20 open streams at 500
events a second: p99 below 100 ms. Real processes on the embedded PostgreSQL, asked in turns.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from uuid import UUID

import psycopg
from bench import streams
from bench.fleet_size import add_team
from bench.messages import FILL, WORDS
from bench.queue import ours
from bench.queue.plan import Plan
from bench.queue.slices import Contender, Tally, in_turns
from bench.queue.stores import database
from bench.raw_http import WARM_UP_SECONDS, RawConnection, answers_per_second, processor_microseconds
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import EmbeddedServer, embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.operator_token import mint_token
from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import MessageId, TeamId, ThreadId, UserId

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
TURNS = 5
READERS, AGENTS = 16, 32
MESSAGES = 5_000
QUEUED = 20_000
PAGE_LIMIT, CLAIM_LIMIT = 1.6, 0.4

THREAD = """
    with made as (
        insert into threads (team_id, id, title, created_by_user_id)
        values (%(team)s, %(thread)s, 'long', %(person)s)
    )
    insert into thread_participants (team_id, id, thread_id, participant_type, user_id, can_read, can_write)
    values (%(team)s, new_id(), %(thread)s, 'human', %(person)s, true, true)
"""


@dataclass(frozen=True)
class Serving:
    address: str
    pid: int


@contextmanager
def serving(*words: str) -> Iterator[Serving]:
    """A program that says its address first."""
    started = [sys.executable, "-m", *words]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            assert address.startswith("http://"), "the server did not start"
            yield Serving(address, program.pid)
        finally:
            program.terminate()


def serve(dsn: str) -> tuple[str, ...]:
    return ("agent_console", "--dsn", with_role(dsn, APP), "serve", "--no-access-log", "--port", "0")


def talked(dsn: str, team_id: TeamId) -> ThreadId:
    """A long thread of the team's one person."""
    thread_id = ThreadId.new()
    with psycopg.connect(dsn, autocommit=True) as connection:
        ((person,),) = connection.execute("select id from users where kind = 'human'").fetchall()
        assert isinstance(person, UUID)
        connection.execute(THREAD, {"team": team_id, "thread": thread_id, "person": UserId.of(person)})
        connection.execute(FILL, (team_id, thread_id, UserId.of(person), WORDS, MESSAGES, 1, MESSAGES))
        connection.execute("vacuum analyze")
    return thread_id


async def same_page(ours_at: tuple[str, str, str], plain_at: tuple[str, str]) -> bool:
    """Both give the same messages."""
    address, path, key = ours_at
    of_ours = json.loads(await (await RawConnection.to(address, key)).ask("GET", path))["items"]
    of_plain = json.loads(await (await RawConnection.to(plain_at[0])).ask("GET", plain_at[1]))["items"]
    told = [(MessageId.of(UUID(item["id"])), item["content"]) for item in of_plain]
    return len(told) == 50 and told == [(MessageId.parse(item["id"]), item["content"]) for item in of_ours]


async def measured(server: Serving, path: str, keys: Sequence[str | None]) -> tuple[float, float]:
    """Answers a second, and the microseconds of processor time that the server spent for each."""
    spent = processor_microseconds(server.pid)
    rate = await answers_per_second(server.address, path, keys, SECONDS)
    return rate, (processor_microseconds(server.pid) - spent) / (rate * (SECONDS + WARM_UP_SECONDS))


async def pages(server: EmbeddedServer) -> bool:
    with database(server, "bench_page") as dsn:
        migrate(dsn)
        team_id, _ = add_team(dsn, "talk", 1)
        thread_id = talked(dsn, team_id)
        # A server takes 100 requests a second from one credential.
        keys = [mint_token(dsn, "admin@talk.example").word for _ in range(READERS)]
        path = f"/v1/threads/{thread_id}/messages?limit=50"
        plain_path = f"/teams/{UUID(int=team_id.int)}/threads/{UUID(int=thread_id.int)}/messages?limit=50"
        taken: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        with serving(*serve(dsn)) as through, serving("bench.plain_page", with_role(dsn, APP)) as plain:
            assert await same_page((through.address, path, keys[0]), (plain.address, plain_path))
            for _ in range(TURNS):
                taken[0].append(await measured(through, path, keys))
                taken[1].append(await measured(plain, plain_path, [None] * READERS))
    ratio = statistics.median(one[0] / other[0] for one, other in zip(*taken, strict=True))
    for name, found in zip(("our server", "a plain route"), taken, strict=True):
        rate, spent = (statistics.median(one[part] for one in found) for part in (0, 1))
        print(f"a page of 50 messages, {READERS} readers, {name}: {rate:,.0f}/s, {spent:,.0f} µs of the processor")
    print(f"ratio {ratio:.2f} (at least {PAGE_LIMIT})")
    return ratio >= PAGE_LIMIT


async def work(connection: RawConnection, tally: Tally) -> None:
    """An agent's day: complete what is held and claim the next with the same call; that call is timed."""
    held = json.loads(await connection.ask("POST", "/v1/claims", b'{"auto_start":true}'))["jobs"]
    while held:
        done = {"attempt": held[0]["attempt"], "result_summary": "done"}
        following = {} if tally.stopped else {"claim_next": {"auto_start": True}}
        path, began = f"/v1/jobs/{held[0]['id']}/complete", time.perf_counter()
        ended = json.loads(await connection.ask("POST", path, json.dumps(done | following).encode()))
        tally.waits.append(time.perf_counter() - began)
        tally.add()
        held = ended["next"]["jobs"] if ended["next"] else []


def over_http(team: ours.Team, address: str) -> Contender:
    @asynccontextmanager
    async def working(workers: int) -> AsyncIterator[Tally]:
        team.heard()
        tally = Tally()
        connections = [await RawConnection.to(address, key.word) for key in team.keys[:workers]]
        tasks = [asyncio.create_task(work(connection, tally)) for connection in connections]
        try:
            yield tally
        finally:
            tally.stopped = True
            await asyncio.gather(*tasks)
            for connection in connections:
                connection.close()

    return Contender("over HTTP", team.store, working)


def claims(server: EmbeddedServer) -> bool:
    plan = Plan(seconds=SECONDS, warm_up=1.0, turns=TURNS)
    with database(server, "bench_claims") as dsn:
        team = ours.settle(dsn)
        with serving(*serve(dsn)) as through:
            contenders = (over_http(team, through.address), ours.gathered(team))
            found = in_turns(contenders, QUEUED, AGENTS, plan)
    http, directly = found["over HTTP"], found[ours.GATHERED]
    ratio = http.rate / directly.rate
    print(
        f"claim and complete, {AGENTS} agents: {http.rate:,.0f}/s over HTTP (p50 {http.p50 or 0:.1f} ms, p99"
        f" {http.p99 or 0:.1f} ms), {directly.rate:,.0f}/s directly, ratio {ratio:.2f} (at least {CLAIM_LIMIT})"
    )
    return ratio >= CLAIM_LIMIT


async def events(stage: streams.Stage) -> bool:
    soon = await streams.notices(stage)
    # Something an agent can hold and tell of is there now.
    _, as_soon = await streams.reported_lines(stage)
    return soon and as_soon


def main() -> int:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        held = [asyncio.run(pages(server)), claims(server)]
    with streams.staged() as stage:
        held.append(asyncio.run(events(stage)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

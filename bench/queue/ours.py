"""This queue, used as agents use it: through the repository, event rows on, the duties done beside it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import psycopg
from bench.fleet_size import add_team
from bench.queue.slices import Contender, Tally
from bench.queue.stores import Store

from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import TeamId
from agent_console.domain.jobs import NewJob
from agent_console.domain.secrets import Secret
from agent_console.domain.working import Assignment, Claim, ClaimWanted, JobDone
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_COMPLETE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository

GATHERED = "ours, gathered in one process"
ONE_BY_ONE = "ours, each worker its own connection"
TWO_CALLS = "ours, gathered, claim and complete apart"

TEAM = "bench"
AGENTS = 32
SERVER_POOL = 8
TYPES = ("report", "index", "mail")
PAYLOAD = {"month": "2026-10"}
CLAIM = ClaimWanted(auto_start=True)
FIRST_CLAIM = Claim(auto_start=True)

KEYS = """
    update agents a set api_key_hash = k.hash
      from unnest(%s::uuid[], %s::text[]) as k (id, hash)
     where a.team_id = %s and a.id = k.id
"""
ADD = """
    insert into jobs (team_id, id, lane_id, type, payload, look_at)
    select l.team_id, new_id(), l.id, l.job_type, '{"month": "2026-10"}', '-infinity'
      from generate_series(1, %(jobs)s) as n
      join (select *, row_number() over (order by id) - 1 as place, count(*) over () as lanes from lanes) as l
        on l.place = n %% l.lanes
"""
WAITING = "select count(*) from jobs where look_at = '-infinity'"
ADD_FINISHED = """
    insert into jobs (team_id, id, lane_id, type, status, payload, agent_id, assigned_at, started_at, finished_at)
    select l.team_id, new_id(), l.id, l.job_type, 'succeeded', '{"month": "2026-09"}',
           (select id from agents limit 1), now(), now(), now()
      from generate_series(1, %(jobs)s) as n
      cross join (select * from lanes limit 1) as l
"""

HEARD = "update agent_runtime set presence = 'online', last_heartbeat_at = now()"

Work = Callable[[Repository, Tally], Awaitable[None]]


@dataclass(frozen=True)
class Team:
    """A team of agents in a database of its own, and their keys."""

    dsn: str
    team_id: TeamId
    keys: tuple[Secret, ...]

    @property
    def store(self) -> Store:
        return Store(self.dsn, add=ADD, waiting=WAITING)

    @property
    def app_dsn(self) -> str:
        return with_role(self.dsn, APP)

    def heard(self) -> None:
        """As if every agent had just been heard: work that nobody seems to do any more is given to others."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(HEARD)

    def add_finished(self, jobs: int) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(ADD_FINISHED, {"jobs": jobs})


def settle(dsn: str) -> Team:
    """A team with three lanes, made as every lane is made: by a job of its kind."""
    migrate(dsn)
    team_id, agents = add_team(dsn, TEAM, AGENTS)
    keys = tuple(Secret.mint(team_id, agent) for agent in agents)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(KEYS, (agents, [key.hash for key in keys], team_id))
    team = Team(dsn, team_id, keys)
    asyncio.run(_make_lanes(team))
    return team


async def _make_lanes(team: Team) -> None:
    backend = Backend(team.app_dsn)
    repository = PostgresRepository(backend, by_name(TEAM, None))
    for kind in TYPES:
        await repository.call(JOBS_CREATE, NewJob(type=kind, payload={**PAYLOAD}))
    await backend.close()


async def in_one_call(repository: Repository, tally: Tally) -> None:
    """An agent's day: complete what it holds and claim the next with the same call; that call is timed."""
    held = await _first(repository, tally)
    while held is not None and not tally.stopped:
        began = time.perf_counter()
        ended = await repository.call(JOBS_COMPLETE, _done(held, CLAIM))
        tally.waits.append(time.perf_counter() - began)
        tally.add()
        held = None if ended.next is None else ended.next.job
        held = held or await _first(repository, tally)
    if held is not None:
        await repository.call(JOBS_COMPLETE, _done(held, None))


async def in_two_calls(repository: Repository, tally: Tally) -> None:
    """As an agent that knows no better does it; only the claim is timed."""
    while not tally.stopped:
        began = time.perf_counter()
        held = (await repository.call(CLAIMS_TAKE, FIRST_CLAIM)).job
        tally.waits.append(time.perf_counter() - began)
        if held is not None:
            await repository.call(JOBS_COMPLETE, _done(held, None))
            tally.add()


async def _first(repository: Repository, tally: Tally) -> Assignment | None:
    """A job, however often it has to be asked for: the queue may be empty until it is fed again."""
    held: Assignment | None = None
    while held is None and not tally.stopped:
        held = (await repository.call(CLAIMS_TAKE, FIRST_CLAIM)).job
    return held


def _done(held: Assignment, claim_next: ClaimWanted | None) -> JobDone:
    return JobDone(job_id=held.id, attempt=held.attempt, result_summary="done", claim_next=claim_next)


@asynccontextmanager
async def agents_at_work(repositories: Sequence[Repository], work: Work = in_one_call) -> AsyncIterator[Tally]:
    tally = Tally()
    tasks = [asyncio.ensure_future(work(repository, tally)) for repository in repositories]
    try:
        yield tally
    finally:
        tally.stopped = True
        await asyncio.gather(*tasks)


def gathered(team: Team, name: str = GATHERED, work: Work = in_one_call) -> Contender:
    @asynccontextmanager
    async def working(workers: int) -> AsyncIterator[Tally]:
        team.heard()
        backend = Backend(team.app_dsn, pool_size=SERVER_POOL)
        repositories = [PostgresRepository(backend, by_token(key)) for key in team.keys[:workers]]
        async with AsyncExitStack() as leaving:
            leaving.push_async_callback(backend.close)
            await leaving.enter_async_context(duties_done(backend))
            yield await leaving.enter_async_context(agents_at_work(repositories, work))

    return Contender(name, team.store, working)


def two_calls(team: Team) -> Contender:
    return gathered(team, TWO_CALLS, in_two_calls)


def one_by_one(team: Team) -> Contender:
    @asynccontextmanager
    async def working(workers: int) -> AsyncIterator[Tally]:
        team.heard()
        async with AsyncExitStack() as leaving:
            backends = [Backend(team.app_dsn, pool_size=1, queue_connections=1) for _ in range(workers)]
            for backend in backends:
                leaving.push_async_callback(backend.close)
            await leaving.enter_async_context(duties_done(backends[0]))
            agents = zip(backends, team.keys, strict=False)
            repositories = [PostgresRepository(backend, by_token(key)) for backend, key in agents]
            yield await leaving.enter_async_context(agents_at_work(repositories))

    return Contender(ONE_BY_ONE, team.store, working)

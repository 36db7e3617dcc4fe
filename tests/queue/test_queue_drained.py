"""Thirty-two workers in two processes drain the queue while callers vanish, lines are cut and leases are lost."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
import pytest

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, JobId
from agent_console.domain.working import (
    Assignment,
    Claim,
    ClaimWanted,
    Ended,
    EventLine,
    JobDone,
    JobFailed,
    JobLines,
    JobProgress,
)
from agent_console.repository.operations.working import (
    CLAIMS_TAKE,
    JOBS_COMPLETE,
    JOBS_FAIL,
    JOBS_LOG,
    JOBS_PROGRESS,
)
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.queue import keep_counts, tend_jobs
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import Row
from tests.queue.lengths import DRAINED
from tests.queue.model import replayed
from tests.queue.more_agents import AddedAgent, crowd
from tests.queue.two_processes import TwoProcesses
from tests.support.fleet import Fleet

Answer = TypeVar("Answer")

WORKERS = 32
LANES = 4
VANISHING = 0.02
AUTO = ClaimWanted(auto_start=True)

ENQUEUE = """
    with made_lanes as (
        insert into lanes (team_id, id, key, job_type)
        select %(team)s, new_id(), repeat(n::text, 64), 'work ' || n from generate_series(1, %(lanes)s) as n
     returning id, job_type
    ), made as (
        insert into jobs (team_id, id, lane_id, type, priority, payload, max_attempts)
        select %(team)s, new_id(), l.id, 'work', g.n %% 3, '{}', 100
          from generate_series(1, %(jobs)s) as g (n)
          join made_lanes l on l.job_type = 'work ' || (1 + g.n %% %(lanes)s)
     returning team_id, id
    )
    insert into job_events (team_id, id, job_id, message, payload)
    select team_id, new_id(), id, 'created as queued', '{"to": "queued"}' from made
"""
# Leases of workers that vanished are over, and now and then that of one who is still there.
LEASES_END = """
    update jobs set lease_expires_at = now(), look_at = now()
     where id in (select id from jobs
                   where status in ('assigned', 'running') and (agent_id = any (%s) or random() < 0.01)
                     for update skip locked)
"""
WAITS_END = """
    update jobs set next_attempt_at = now(), look_at = now()
     where id in (select id from jobs where status = 'queued' and look_at > now() for update skip locked)
"""
CUT_A_LINE = """
    select pg_terminate_backend(pid) from (
        select pid from pg_stat_activity
         where datname = current_database() and application_name = 'agent-console'
         order by random() limit 1) as one
"""


@dataclass
class Shift:
    """What the workers were given and what they were told was done, by job and attempt."""

    seed: random.Random
    given: Counter[tuple[JobId, int]] = field(default_factory=Counter)
    done: dict[tuple[JobId, int], AgentId] = field(default_factory=dict)
    vanished: set[AgentId] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Worker:
    def __init__(self, agent: AddedAgent, repository: Repository, shift: Shift) -> None:
        self.agent, self.repository, self.shift = agent, repository, shift

    async def work(self) -> None:
        job: Assignment | None = None
        while not self.shift.over.is_set():
            try:
                job = await self._claimed() if job is None else await self._worked(job)
            except (ConsoleError, asyncio.CancelledError):
                # Refused, cut off or gone: whatever it held is left to its lease.
                job = None
                self.shift.vanished.add(self.agent.id)

    async def _vanishing(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        """Now and then the caller is gone before its answer comes."""
        if self.shift.seed.random() >= VANISHING:
            return await asked
        task = asyncio.create_task(asked)
        for _ in range(self.shift.seed.randrange(30)):
            await asyncio.sleep(0)
        task.cancel()
        return await task

    async def _claimed(self) -> Assignment | None:
        claim = Claim(auto_start=True, wait_seconds=0.2)
        claimed = await self._vanishing(self.repository.call(CLAIMS_TAKE, claim))
        return self._noted(claimed.job)

    def _noted(self, job: Assignment | None) -> Assignment | None:
        if job is not None:
            self.shift.given[job.id, job.attempt] += 1
            self.shift.vanished.discard(self.agent.id)
        return job

    async def _worked(self, job: Assignment) -> Assignment | None:
        whose = {"job_id": job.id, "attempt": job.attempt}
        chance = self.shift.seed.random()
        if chance < 0.2:
            await self.repository.call(JOBS_PROGRESS, JobProgress.model_validate(whose | {"percentage": 50}))
        elif chance < 0.3:
            line = JobLines(job_id=job.id, attempt=job.attempt, events=(EventLine(message="half way"),))
            await self.repository.call(JOBS_LOG, line)
        if chance > 0.97:
            failed = JobFailed.model_validate(whose | {"error": "again", "claim_next": AUTO})
            ended: Ended = await self._vanishing(self.repository.call(JOBS_FAIL, failed))
        else:
            done = JobDone.model_validate(whose | {"result": {}, "claim_next": AUTO})
            ended = await self._vanishing(self.repository.call(JOBS_COMPLETE, done))
            assert (job.id, job.attempt) not in self.shift.done, "done twice under one fence"
            self.shift.done[job.id, job.attempt] = self.agent.id
        return None if ended.next is None else self._noted(ended.next.job)


async def trouble(fleet: Fleet, backend: Backend, shift: Shift) -> None:
    """Time that passes faster than it should, lines that are cut, and the one who looks after the queue."""
    rounds = 0
    async with await psycopg.AsyncConnection.connect(fleet.administration, autocommit=True) as connection:
        while not shift.over.is_set():
            await connection.execute(LEASES_END, (list(shift.vanished),))
            await connection.execute(WAITS_END)
            if rounds % 4 == 0:
                await connection.execute(CUT_A_LINE)
            with suppress(ConsoleError):
                await tend_jobs(backend)
                await keep_counts(backend)
            left = await connection.execute("select exists (select from jobs where finished_at is null)")
            if (await left.fetchone()) == (False,):
                shift.over.set()
            rounds += 1
            await asyncio.sleep(0.1)


@pytest.mark.rule("R000-144", "R003-31", "R003-34", "U003-10", "R001-40", "R000-152")
async def test_everything_is_done_once_and_nothing_is_lost(quiet: Fleet) -> None:
    agents = crowd(quiet, WORKERS)
    with psycopg.connect(quiet.administration) as connection:
        connection.execute(ENQUEUE, {"team": quiet.team_id(), "lanes": LANES, "jobs": DRAINED})
    backends = (Backend(quiet.working), Backend(quiet.working))
    shift = Shift(random.Random(4711))
    workers = [
        Worker(agent, PostgresRepository(backends[place % 2], by_token(agent.secret)), shift)
        for place, agent in enumerate(agents)
    ]

    await asyncio.gather(*(worker.work() for worker in workers), trouble(quiet, backends[0], shift))
    for backend in backends:
        await backend.close()

    watching = TwoProcesses(quiet, agents)
    seen = watching.seen()
    counted = watching.counts_are_right()
    results = {(row["job_id"], row["attempt"]): row["agent_id"] for row in watching.rows(RESULTS)}
    await watching.close()
    assert len(seen) == DRAINED
    assert {row["status"] for row in seen.values()} == {"succeeded"}
    assert [pair for pair, times in shift.given.items() if times > 1] == [], "two owners of one attempt"
    assert len(results) == DRAINED
    assert shift.done.items() <= results.items(), "somebody was told of something that is not so"
    for row in seen.values():
        told = story(row)
        assert replayed(told) == "succeeded"
        assert row["attempt"] == 1 + sum(
            went_to == "queued" and came_from is not None for came_from, went_to in told
        )
    assert counted
    assert any(row["attempt"] != 1 for row in seen.values()), "nothing went wrong: this proves nothing"


RESULTS = """
    select r.job_id, r.attempt, a.id as agent_id
      from job_results r join agents a on a.system_user_id = r.created_by_user_id
"""


def story(row: Row) -> list[tuple[object, object]]:
    told = row["story"]
    assert isinstance(told, list)
    return [(line.get("from"), line["to"]) for line in told]

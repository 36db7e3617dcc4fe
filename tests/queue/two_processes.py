"""Two processes on one queue, seen from a test: their agents, their operator, and the rows as they are stored."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from uuid import UUID

import psycopg
from psycopg.rows import DictRow, dict_row

from agent_console.domain.errors import ConsoleError, DatabaseUnavailable
from agent_console.domain.ids import JobId
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.database.queue_counted import BOTH
from tests.queue.crew import TIME_PASSES, Row, until
from tests.queue.more_agents import AddedAgent
from tests.support.fleet import Fleet

# Everything in one statement, so that all of it is of one moment.
SEEN = """
    select j.id, j.status, j.attempt, j.agent_id, j.priority, j.look_at = '-infinity' as claimable,
           j.cancel_requested_at is not null as cancelling,
           extract(epoch from case when j.status in ('assigned', 'running')
                                   then least(j.lease_expires_at,
                                              j.assigned_at + make_interval(secs => j.max_run_seconds))
                                   when j.look_at = '-infinity' then null
                                   when j.status = 'queued' then j.next_attempt_at
                                   when j.status = 'scheduled' then j.scheduled_for end)::float as deadline,
           extract(epoch from j.next_attempt_at - j.updated_at)::float as waits,
           j.look_at > j.lease_expires_at as looked_at_too_late,
           case when j.finished_at is not null then to_jsonb(j) end as ended,
           (select jsonb_agg(e.payload order by e.seq) from job_events e
             where e.team_id = j.team_id and e.job_id = j.id and e.payload ? 'to') as story
      from jobs j
"""
# Waits until they are gone: one that still answers once would be taken for one that was spared.
HANG_UP = """
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where datname = current_database() and application_name = 'agent-console'
       and query not like 'listen %%'
"""


class TwoProcesses:
    """Made anew for every example; the database stays."""

    def __init__(self, fleet: Fleet, agents: Sequence[AddedAgent]) -> None:
        self.backends = (Backend(fleet.working), Backend(fleet.working))
        self._agents = [
            [PostgresRepository(backend, by_token(agent.secret)) for agent in agents] for backend in self.backends
        ]
        self._operators = [PostgresRepository(backend, by_name("example", None)) for backend in self.backends]
        self._watching = psycopg.connect(fleet.administration, autocommit=True, row_factory=dict_row)

    def agent(self, place: int, process: int) -> Repository:
        return self._agents[process][place]

    def operator(self, process: int) -> Repository:
        return self._operators[process]

    def rows(self, statement: str, *values: object) -> list[Row]:
        cursor = self._watching.execute(statement.encode(), values)
        found: list[DictRow] = cursor.fetchall() if cursor.description else []
        return found

    def seen(self) -> dict[JobId, Row]:
        return {JobId.of(UUID(str(row["id"]))): row for row in self.rows(SEEN)}

    def now(self) -> float:
        (found,) = self.rows("select extract(epoch from clock_timestamp())::float as now")
        return float(str(found["now"]))

    def counts_are_right(self) -> bool:
        return self.rows(BOTH)[0]["same"] is True

    def time_passes(self, seconds: float) -> None:
        self.rows(TIME_PASSES, seconds)

    async def leaving(self, asked: Callable[[], Awaitable[object]], steps: int) -> None:
        """Begin something, go away after some steps of it, and wait until nobody works on it any more."""
        task = asyncio.ensure_future(asked())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError, ConsoleError):
            await task
        await self.rest()

    async def hung_up(self, asked: Callable[[], Awaitable[object]], steps: int) -> None:
        """Begin something, cut every connection during it, and go on with new ones."""
        task = asyncio.ensure_future(asked())
        for _ in range(steps):
            await asyncio.sleep(0)
        self.rows(HANG_UP)
        with suppress(ConsoleError):
            await task
        await self.rest()
        for backend in self.backends:
            for _ in range(8):
                with suppress(DatabaseUnavailable):
                    await backend.queue.connections.rows("select 1 as one", {})

    async def rest(self) -> None:
        await until(lambda: not any(_at_work(backend) for backend in self.backends))

    async def close(self) -> None:
        for backend in self.backends:
            await backend.close()
        self._watching.close()


def _at_work(backend: Backend) -> bool:
    """Whether a statement of agents is being made just now."""
    queue = backend.queue
    turns, reports = queue.turns._gatherer._lines, queue.held._gatherer._lines
    return any(line.workers for line in turns.values()) or any(line.workers for line in reports.values())

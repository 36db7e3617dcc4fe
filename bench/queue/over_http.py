"""Claim and complete through the HTTP server: a real program on a real socket, agents in this process."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from bench.queue import ours
from bench.queue.plan import Plan
from bench.queue.slices import Contender, Slice, Tally, in_turns
from bench.queue.stores import database
from bench.queue.told import Found, Table, number

from agent_console.database.embedded import EmbeddedServer
from agent_console.repository.http.repository import HttpRepository

NAME = "ours, through the HTTP server"
AGENTS = (8, 32)
MEANING = """\
Jobs per second, and the milliseconds of a call that completes what is held and claims the next. The
server is `agent-console serve`, one process; the agents are httpx clients, all in one other process.
Beside it the same agents in one process without a server. {depth:,} queued."""


@contextmanager
def serving(dsn: str) -> Iterator[str]:
    """The program, as users start it; the value is its address."""
    words = [sys.executable, "-m", "agent_console", "--dsn", dsn, "serve", "--no-access-log", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            address = program.stdout.readline().strip()
            assert address.startswith("http://"), "the server did not start"
            yield address
        finally:
            program.terminate()


def over_http(team: ours.Team, address: str) -> Contender:
    @asynccontextmanager
    async def working(workers: int) -> AsyncIterator[Tally]:
        team.heard()
        async with AsyncExitStack() as leaving:
            agents = [HttpRepository(address, key.word) for key in team.keys[:workers]]
            for agent in agents:
                leaving.push_async_callback(agent.close)
            yield await leaving.enter_async_context(ours.agents_at_work(agents))

    return Contender(NAME, team.store, working)


def measure(server: EmbeddedServer, plan: Plan) -> Found:
    with database(server, "bench_ours") as dsn:
        team = ours.settle(dsn)
        with serving(dsn) as address:
            contenders = (over_http(team, address), ours.gathered(team))
            found = {agents: in_turns(contenders, plan.usual_depth, agents, plan) for agents in AGENTS}
    columns = ("jobs/s (p50 / p99 in ms)", *(f"{agents} agents" for agents in AGENTS))
    rows = tuple((name, *(_cell(found[agents][name]) for agents in AGENTS)) for name in (NAME, ours.GATHERED))
    return Found((Table("Through the HTTP server", MEANING.format(depth=plan.usual_depth), columns, rows),))


def _cell(found: Slice) -> str:
    return f"{found.rate:,.0f} ({number(found.p50, 1)} / {number(found.p99, 1)})"

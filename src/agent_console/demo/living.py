"""The demo's agents at work: all in one event loop, each with its own key, until they are told to leave."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_console.agent import Agent, Pace
from agent_console.demo.asking import Asking, Tempo, standing_jobs
from agent_console.demo.cast import AGENTS, ASKS, DemoAgent
from agent_console.demo.coming_in import Keys, agent_ids, come_in
from agent_console.demo.pausing import Rest, rest
from agent_console.demo.stories import Stories
from agent_console.demo.working import worker
from agent_console.domain.errors import ConsoleError, Forbidden, Unauthorized
from agent_console.domain.jobs import JobQuery
from agent_console.domain.records import PAGE_LIMIT_MAX, Nothing
from agent_console.domain.states import JOB_HELD
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.fleet import JOBS_CREATE, JOBS_LIST, ME
from agent_console.repository.operations.presence import HEARTBEAT_DISCONNECT
from agent_console.repository.port import Repository

ASKED_IN_A_THREAD = "agent_run"
LEASE_SECONDS = 60
# An example must not keep a small machine busy: it speaks as seldom as it may.
PACE = Pace(busy_heartbeat_seconds=20.0, claim_seconds=20.0)
# A demo that ends waits for nobody: what is not done goes back to the queue.
GRACE_SECONDS = 2.0
USUAL_TEMPO = Tempo()

log = logging.getLogger("agent_console.demo")


@dataclass(frozen=True)
class Orders:
    """Where the fleet works, with whose token it comes in, and where its keys are kept."""

    url: str
    token: str
    folder: Path


async def live(
    orders: Orders,
    until: asyncio.Event,
    ready: Callable[[], None],
    *,
    tempo: Tempo = USUAL_TEMPO,
    resting: Rest = rest,
) -> None:
    """Come in, say that all are here, and work until the event."""
    keys = Keys(orders.folder)
    async with HttpRepository(orders.url, orders.token) as administrator:
        await come_in(administrator, keys)
        watcher = (await administrator.call(ME, Nothing())).user_id
        await _give_back(administrator, orders.url, keys)
    ids = agent_ids(keys)
    stories = Stories(ids, resting)
    agents = {one.name: _agent(one, orders.url, keys, stories) for one in AGENTS if one.name in ids}
    async with HttpRepository(orders.url, keys.word(ASKS.email)) as operator, asyncio.TaskGroup() as living:
        for name, agent in agents.items():
            living.create_task(_work(name, agent))
        with suppress(ConsoleError):
            for job in standing_jobs(datetime.now(UTC)):
                await operator.call(JOBS_CREATE, job)
        asking = living.create_task(Asking(operator, ids, watcher, tempo).go_on())
        ready()
        await until.wait()
        asking.cancel()
        for agent in agents.values():
            agent.leave(at_once=True)


def _agent(one: DemoAgent, url: str, keys: Keys, stories: Stories) -> Agent:
    agent = Agent(
        url,
        keys.word(one.name) or "",
        concurrency=one.concurrency,
        lease_seconds=LEASE_SECONDS,
        grace=GRACE_SECONDS,
        pace=PACE,
    )
    agent.handle(ASKED_IN_A_THREAD)(stories.parts().get(one.name, stories.answers))
    agent.handle()(worker(stories.rest))
    return agent


async def _give_back(administrator: Repository, url: str, keys: Keys) -> None:
    """What these agents held when they were killed goes back to the queue, at no cost to its attempts."""
    held = JobQuery(status=tuple(sorted(JOB_HELD)), limit=PAGE_LIMIT_MAX)
    holding = {job.agent_id for job in (await administrator.call(JOBS_LIST, held)).items}
    killed = (name for name, agent_id in agent_ids(keys).items() if agent_id in holding)
    await asyncio.gather(*(_disconnect(url, keys.word(name)) for name in killed))


async def _disconnect(url: str, key: str | None) -> None:
    with suppress(ConsoleError):
        async with HttpRepository(url, key) as repository:
            await repository.call(HEARTBEAT_DISCONNECT, Nothing())


async def _work(name: str, agent: Agent) -> None:
    """One that is not let in any more, because an operator revoked or deleted it, leaves the others at work."""
    try:
        await agent.run(signals=False)
    except (Unauthorized, Forbidden) as refusal:
        log.warning("%s is not let in any more: %s", name, refusal)

"""Some of the agents of `bench.fleet`, in a process of their own: real ones, each with its key, until SIGTERM.

python -m bench.fleet_agents http://127.0.0.1:8080 < agents.json
"""

import asyncio
import json
import logging
import random
import signal
import sys
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from agent_console.agent import Agent, JobContext, JobFailure
from agent_console.domain.delegation import DelegationState
from agent_console.domain.ids import ThreadId

LEASE_SECONDS = 60
REJECTED = "rejected"
_CHANCE = random.SystemRandom()


@dataclass(frozen=True)
class Part:
    """What one agent does: it works, or it asks a reviewer in a thread, or it is one."""

    key: str
    role: str
    reviewer: str | None = None
    thread: str | None = None


def packed(parts: list[Part]) -> str:
    return json.dumps([asdict(part) for part in parts])


async def report(job: JobContext) -> dict[str, JsonValue]:
    for step in range(1, 5):
        job.event(f"chapter {step} of 4")
        job.progress(25 * step, "writing")
        await asyncio.sleep(0.2)
    return {"pages": 4}


async def index(job: JobContext) -> dict[str, JsonValue]:
    await asyncio.sleep(_CHANCE.uniform(0.1, 1.5))
    return {"files": 7}


async def mail(job: JobContext) -> str:
    return "sent"


async def flaky(job: JobContext) -> str:
    if job.attempt == 1:
        raise JobFailure("the other side hung up", retryable=True)
    return "done at the second try"


async def review(job: JobContext) -> str:
    await asyncio.sleep(0.2)
    return "looked at it"


def agent_of(url: str, part: Part) -> Agent:
    agent = Agent(url, part.key, lease_seconds=LEASE_SECONDS)
    match part:
        case Part(role="works"):
            for handler in (report, index, mail, flaky):
                agent.handle(handler.__name__)(handler)
        case Part(role="reviews"):
            agent.handle("agent_run")(review)
        case Part(reviewer=str(reviewer), thread=str(thread)):
            asks_in(agent, reviewer, ThreadId.parse(thread))
    return agent


def asks_in(agent: Agent, reviewer: str, thread_id: ThreadId) -> None:
    @agent.handle("ask")
    async def ask(job: JobContext) -> str:
        answer = await job.delegate(reviewer, f"Please look at {job.id}", thread_id=thread_id)
        if answer.state is DelegationState.REJECTED:
            raise JobFailure("a person said no", code=REJECTED)
        if answer.run is None or answer.run.status != "succeeded":
            raise JobFailure(f"nobody looked at it: {answer.state.value}", retryable=True)
        return "it was looked at"


async def run_all(agents: list[Agent]) -> None:
    def leave() -> None:
        for agent in agents:
            agent.leave()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
    await asyncio.gather(*(agent.run(signals=False) for agent in agents))


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    parts = [Part(**part) for part in json.load(sys.stdin)]
    asyncio.run(run_all([agent_of(sys.argv[1], part) for part in parts]))

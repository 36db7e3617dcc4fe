"""Some agents of the faulty world, in a process of their own until they are killed.

Every job that one begins is written down first: job, attempt, agent. SIGUSR1 puts the clock of the process forward
by an hour, SIGUSR2 back by two. SIGHUP takes the process its name service, and gives it back.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agent_console.agent import Agent, JobContext, Pace

PACE = Pace(
    heartbeat_seconds=1.5,
    busy_heartbeat_seconds=1.5,
    claim_seconds=2.0,
    refused_seconds=0.5,
    outcome_seconds=20.0,
    batch_seconds=0.1,
    retry_seconds=(0.05, 0.1, 0.2, 0.4),
)
LEASE_SECONDS = 20
HOUR = 3600.0


@dataclass(frozen=True)
class Crew:
    """`keys` by the agents' names."""

    url: str
    journal: str
    keys: dict[str, str]


def jumping_clock() -> Callable[[float], None]:
    """From now on the wall clock of this process can be moved, as somebody who sets it does."""
    real, moved = time.time, [0.0]
    time.time = lambda: real() + moved[0]

    def jump(seconds: float) -> None:
        moved[0] += seconds

    return jump


def failing_names() -> Callable[[], None]:
    """From now on it can be switched whether a name is found."""
    real, gone = socket.getaddrinfo, [False]

    def look_up(*asked: Any, **more: Any) -> Any:
        if gone[0]:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(*asked, **more)

    socket.getaddrinfo = look_up

    def switch() -> None:
        gone[0] = not gone[0]

    return switch


def agent_of(crew: Crew, name: str, written: int) -> Agent:
    agent = Agent(crew.url, crew.keys[name], concurrency=3, lease_seconds=LEASE_SECONDS, pace=PACE)

    @agent.handle()
    async def work(job: JobContext) -> dict[str, JsonValue]:
        os.write(written, f"{job.id} {job.attempt} {name}\n".encode())
        job.progress(50, "halfway")
        await asyncio.sleep(0.03)
        return {"by": name}

    return agent


async def main(crew: Crew) -> None:
    jump = jumping_clock()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, jump, HOUR)
    loop.add_signal_handler(signal.SIGUSR2, jump, -2 * HOUR)
    loop.add_signal_handler(signal.SIGHUP, failing_names())
    written = os.open(Path(crew.journal), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    await asyncio.gather(*(agent_of(crew, name, written).run(signals=False) for name in crew.keys))


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(main(Crew(**json.loads(sys.stdin.readline()))))

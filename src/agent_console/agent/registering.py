"""Coming in as a new agent: a token is exchanged for a key, which goes into a file and nowhere else."""

import asyncio

from agent_console.agent.keys import KeyFile
from agent_console.agent.line import Line
from agent_console.agent.pace import Pace
from agent_console.domain.errors import TimedOut
from agent_console.domain.registration import ASK_AGAIN_MINUTES, AgentRegistration, Registered
from agent_console.repository.operations.credentials import AGENTS_REGISTER
from agent_console.repository.port import Repository

PATIENCE_SECONDS = 60.0


async def register(
    repository: Repository,
    wanted: AgentRegistration,
    key_file: KeyFile,
    *,
    pace: Pace,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Registered:
    """Ask with one nonce until there is an answer: a lost one costs neither the token nor the agent."""
    line = Line(repository, pace)
    try:
        async with asyncio.timeout(patience_seconds):
            registered = await line.insist(AGENTS_REGISTER, lambda: wanted)
    except TimeoutError:
        raise TimedOut(
            "Nobody answered, so it is not known whether the agent was registered.",
            hint=f"Run the same command again within {ASK_AGAIN_MINUTES} minutes; it goes on where this stopped.",
        ) from None
    key_file.keep(registered.secret)
    return registered

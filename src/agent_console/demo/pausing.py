"""How the demo's agents let time pass."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agent_console.agent import JobContext

Rest = Callable[[JobContext, float], Awaitable[bool]]
"""Let so many seconds pass; False when the job has to stop, and then at once."""


async def rest(job: JobContext, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await job.until_cancelled()
    return not job.cancelled

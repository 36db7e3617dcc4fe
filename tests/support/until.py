"""Waiting for what other tasks do."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool], *, look: float = 0.01) -> None:
    """Let others work until something is so; a minute is a failure."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(look)

"""Work for somebody who may go away, or who would wait for ever."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive

from agent_console.domain.errors import TimedOut

Answer = TypeVar("Answer")


class ClientGone(Exception):
    """Nobody is there any more to be answered."""


async def while_client_stays(receive: Receive, answering: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer; when the client goes away before it is there, the work is cancelled at once."""
    work, gone = asyncio.create_task(answering), asyncio.create_task(until_gone(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientGone
        return work.result()
    finally:
        work.cancel()
        gone.cancel()
        await asyncio.wait({work, gone})


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds) as waiting:
            yield
    except TimeoutError as error:
        if not waiting.expired():
            raise
        raise TimedOut(
            f"There was no answer within {seconds:g} s.",
            hint="Whether a change was made is not known: look before you try again.",
        ) from error

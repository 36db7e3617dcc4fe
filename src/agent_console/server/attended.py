"""Work for somebody who may go away, or who would wait for ever."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import Any, TypeVar

from starlette.types import Receive

from agent_console.domain.errors import LOOK_FIRST, TimedOut
from agent_console.server.leaving import Leaving, stopping

Answer = TypeVar("Answer")


class ClientGone(Exception):
    """Nobody is there any more to be answered."""


async def while_client_stays(
    receive: Receive, answering: Coroutine[Any, Any, Answer], *, leaving: Leaving | None = None
) -> Answer:
    """The answer; when the client goes away before it is there, or the server stops, the work is cancelled.

    Without `leaving` it goes on while the server stops.
    """
    stops: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with nullcontext() if leaving is None else leaving.telling(lambda: stops.set_result(None)):
        work, gone = asyncio.create_task(answering), asyncio.create_task(until_gone(receive))
        try:
            either: set[asyncio.Future[Any]] = {work, gone, stops}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientGone if gone.done() else stopping()
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
            hint=LOOK_FIRST,
        ) from error

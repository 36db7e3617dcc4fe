"""Work through a batched operation: step after step, telling how far it is, and stopping between two steps."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent_console.cli.output import narrate, progress
from agent_console.domain.batches import Batch, BatchRequest
from agent_console.domain.errors import ConsoleError
from agent_console.repository.operations import AnyOperation
from agent_console.repository.port import Repository


@dataclass(frozen=True)
class Worked:
    """What all steps together did; `stopped` when somebody did not want the rest of them."""

    answer: Batch
    stopped: bool


def _told(so_far: Batch) -> str:
    left = f"more than {so_far.left:,}" if so_far.left_capped else f"{so_far.left:,}"
    return f"{so_far.done:,} done, {left} left"


async def in_batches(repository: Repository, operation: AnyOperation, request: BatchRequest) -> Worked:
    """Every step until there is none left. Ctrl-C lets the step that runs end, so that what is told is true."""
    so_far: Batch | None = None
    with interruption() as stop:
        try:
            while True:
                step: Batch = await repository.call(operation, request)
                so_far = step.following(so_far)
                if step.next is None or stop.is_set():
                    break
                progress(_told(so_far))
                request = request.model_copy(update={"after": step.next})
        except ConsoleError:
            if so_far is not None:
                progress("")
                narrate(f"{so_far.done:,} were done before this. Go on with: --after {request.after}")
            raise
    progress("")
    stopped = so_far.next is not None
    if stopped:
        narrate(f"Stopped: {_told(so_far)}. Go on with: --after {so_far.next}")
    return Worked(so_far, stopped)


@contextmanager
def interruption() -> Iterator[asyncio.Event]:
    """Is set by the first Ctrl-C; the second ends the program as ever. What is ignored stays ignored."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield stop
        return

    def heard() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, heard)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGINT)

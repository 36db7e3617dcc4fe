"""Work on many things: look first, then go on batch by batch until it is done or somebody stops it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from agent_console.domain.batches import BATCH_MOST, Batch, BatchRequest
from agent_console.repository.operations import AnyOperation
from agent_console.tui.actions import IDS
from agent_console.tui.link import Link


class Looked(BaseModel):
    """What would be asked for, and what was found when it was only looked at."""

    model_config = ConfigDict(frozen=True)

    requests: tuple[BatchRequest, ...]
    found: Batch


@dataclass(frozen=True)
class SoFar:
    """What was done up to now; `more` while there is something left to ask for."""

    batch: Batch
    more: bool


def parted(request: BatchRequest, ids: tuple[str, ...]) -> tuple[BatchRequest, ...]:
    """The same request for as many ids at a time as one batch takes; without ids it is one request."""
    if not ids:
        return (request,)
    model = type(request)
    parts = (ids[start : start + BATCH_MOST] for start in range(0, len(ids), BATCH_MOST))
    return tuple(model.model_validate(request.model_dump() | {IDS: part}) for part in parts)


def _count(request: BatchRequest) -> int:
    return len(getattr(request, IDS, ()))


async def looked(link: Link, operation: AnyOperation, requests: tuple[BatchRequest, ...]) -> Looked:
    """How many would be changed, and a few of them. Nothing is."""
    found: Batch | None = None
    for request in requests:
        step: Batch = await link.call(operation, request.model_copy(update={"dry_run": True}))
        before = 0 if found is None else found.left
        first = () if found is None else examples_of(found)
        found = step.following(found).model_copy(
            update={"left": before + step.left, "examples": first or examples_of(step)}
        )
    return Looked(requests=requests, found=found or Batch(done=0))


def examples_of(batch: Batch) -> tuple[BaseModel, ...]:
    """What a dry run shows of those that would be changed, where its answer has such."""
    found = getattr(batch, "examples", ())
    return found if isinstance(found, tuple) else ()


async def done_in_batches(
    link: Link, operation: AnyOperation, requests: tuple[BatchRequest, ...]
) -> AsyncIterator[SoFar]:
    """What was done so far, told after every batch: whoever asks for no more has stopped it."""
    so_far: Batch | None = None
    for place, first in enumerate(requests):
        request, later = first, requests[place + 1 :]
        while True:
            step: Batch = await link.call(operation, request)
            so_far = step.following(so_far)
            left = step.left + sum(_count(other) for other in later)
            yield SoFar(so_far.model_copy(update={"left": left}), more=step.next is not None or bool(later))
            if step.next is None:
                break
            request = request.model_copy(update={"after": step.next})
